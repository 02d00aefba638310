// The answer: verdict, law, downloads, predictions, report.

import { $, ask, count, make, say, sentence, show, turns } from "./api.js";

const SHOWN = 12; // names of columns, at most
const begin = turns(); // predictions
let current = null; // { run, of: { name, asked } }

export function showAnswer(run, result, of, focus) {
  begin();
  current = { run, of };
  $("answer").className = result.verdict.toLowerCase();
  $("badge").replaceChildren(
    make("span", { "aria-hidden": "true" }, result.sign), ` ${result.badge} `, make("span", {}, `(${result.verdict})`),
  );
  say("answer-title", result.headline);
  say("answer-of", `${of.name}: ${inWords(of.asked)}`);
  say("predict", `Predict for ${of.name}`);
  say("law", result.law ? `${result.accepted ? "" : "Best candidate, not accepted: "}${result.law}` : "");
  $("formula").replaceChildren(...result.written.map((line) => make("div", {}, line)));
  $("formula").hidden = !result.written.length;
  const inner = result.written[0]?.includes("⟨") ? ["⟨u,v⟩ = uᵀAv is the inner product of this form, so ⟨x,x⟩ is q(x)"] : [];
  say("inner", [...inner, ...result.said].map(sentence).join(""));
  const error = result.errors[0];
  const tiles = {
    Symmetry: result.symmetry ?? (result.group ? `${result.group}, not accepted` : ""),
    "How exactly": result.exactly,
    Confidence: !result.accepted ? "" : result.confidence > 0.99 ? "above 99 %" : `${Math.round(100 * result.confidence)} %`,
    "Held-out error": error ? `${shortly(error.relative_mse)} of the ${result.classes ? "log loss" : "variance"}` : "",
    Samples: result.samples.toLocaleString("en"),
    Took: `${result.seconds.toFixed(1)} s`,
  };
  $("tiles").replaceChildren(...Object.entries(tiles).filter(([, value]) => value)
    .map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  say("reason", result.reason);
  say("advice", result.advice ? `What to do next. ${result.advice}` : "");
  const notices = [...result.beside, ...result.notices];
  $("notices").replaceChildren(...notices.map((notice) => make("li", {}, notice)));
  $("notices").hidden = !notices.length;
  say("command", result.command);
  $("same").hidden = !result.command;
  $("get-report").href = `/runs/${run}/report.html?download=1`;
  $("get-run").href = `/runs/${run}/run.zip`;
  $("predict").hidden = $("predict-label").hidden = !result.predicts;
  forgetPredictions();
  $("report").src = `/runs/${run}/report.html`;
  document.title = `${result.verdict} · gortho`;
  show("answer", focus ? "answer-title" : null);
}

function inWords({ x, y, scalars, derivative }) {
  const target = derivative.length ? `dx/d${derivative[0]}` : y.join(", ");
  const names = x.length > SHOWN ? [...x.slice(0, SHOWN - 1), "…", x.at(-1)] : x;
  return `x = (${names.join(", ")}), y = ${target}${scalars.length ? `, scalars: ${scalars.join(", ")}` : ""}`;
}

// Says so where an answer is not of what is chosen: the file above, and the options to ask (null if they are none).
export function markAnswer(file, options) {
  if (!current || $("answer").hidden) return;
  const { name, asked } = current.of;
  const text = !file || JSON.stringify(options) === JSON.stringify(asked) ? ""
    : file.file !== asked.file ? `This is the answer for ${name}, and ${file.name} is chosen above.`
    : "The choices above have changed since: “Find the form” answers for the new ones.";
  if ($("stale").textContent !== text) say("stale", text); // read aloud once
}

function shortly(value) {
  if (value === null) return "unknown";
  return value !== 0 && (value < 1e-3 || value >= 10) ? value.toExponential(1) : `${Number((100 * value).toPrecision(2))} %`;
}

function forgetPredictions() {
  say("predict-state", "");
  say("predict-error", "");
  $("get-predictions").hidden = true;
}

async function predict(file, name, last) {
  forgetPredictions();
  say("predict-state", `Predicting for ${name} …`);
  const { run } = current;
  const dropna = document.querySelector("[name=dropna]").checked;
  const made = await ask("POST", `/runs/${run}/predictions`, { file, dropna });
  if (!last()) return;
  const notes = made.notes.map((note) => ` Note: ${note}.`).join("");
  say("predict-state", `${count(made.rows, "prediction")} for ${name}.${notes}`);
  $("get-predictions").href = `/runs/${run}/${made.file}`;
  $("get-predictions").hidden = false;
  $("get-predictions").focus();
}

async function guarded(work) {
  const last = begin();
  try {
    await work(last);
  } catch (error) {
    if (!last()) return;
    say("predict-state", "");
    say("predict-error", error.message);
  }
}

// `upload` stores a file and gives its { file, name }.
export function listenToAnswer(upload) {
  $("predict").addEventListener("click", () => guarded((last) => {
    const { asked, name } = current.of;
    return predict(asked.file, name, last);
  }));
  $("other").addEventListener("change", () => guarded(async (last) => {
    const [file] = $("other").files;
    $("other").value = "";
    if (!file) return;
    say("predict-state", `Taking ${file.name} …`);
    const stored = await upload(file);
    if (last()) await predict(stored.file, stored.name, last);
  }));
  // The report has no scripts: its height is told from here.
  const fit = () => {
    const page = $("report").contentDocument?.documentElement;
    if (page && !$("answer").hidden) $("report").style.height = `${page.getElementsByTagName("body")[0].offsetHeight + 2}px`;
  };
  $("report").addEventListener("load", fit);
  new ResizeObserver(fit).observe($("answer"));
}
