// From a file to an answer.

import { $, ask, bytes, count, say, show, turns } from "./api.js";
import { listenToAnswer, markAnswer, showAnswer } from "./answer.js";
import { choose, chosen, listenToColumns, showColumns } from "./columns.js";

const OFTEN = 300; // milliseconds between looks at a search
const STAGES = {
  starting: "Starting",
  reading: "Reading the file",
  search: "Searching for forms",
  refits: "Fitting again to resamples, for the error bars",
  predictor: "Fitting the predictor",
  twins: "Comparing with models that know no form",
  members: "Fitting the committee",
  last: "Last tests, and other symmetries if no form alone is enough",
  writing: "Writing the report",
};
let file = null; // { file, name, size }
const begin = turns(); // files, and looks at them

// Remembered, so that the page can be loaded again.
const remember = (name, value) => sessionStorage.setItem(name, JSON.stringify(value));
const remembered = (name) => JSON.parse(sessionStorage.getItem(name) ?? "null");

async function upload(chosenFile) {
  const most = Number(document.body.dataset.maxUpload);
  if (chosenFile.size > most) {
    throw new Error(`${chosenFile.name} has ${bytes(chosenFile.size)}, and this page takes up to ${bytes(most)}: ` +
      "use gortho discover, which reads files of any size.");
  }
  return ask("PUT", `/files?name=${encodeURIComponent(chosenFile.name)}`, chosenFile);
}

async function take(stored) {
  const last = begin();
  say("file-error", "");
  document.querySelector("[name=decimal]").value = ".";
  $("ask").hidden = $("answer").hidden = true;
  file = null;
  sessionStorage.clear();
  try {
    const taken = await stored();
    if (!last()) return;
    file = taken;
    remember("file", file);
    await look(true, last);
  } catch (error) {
    if (!last()) return;
    say("file-state", "");
    say("file-error", error.message);
  }
}

async function look(focus, last) {
  const seen = file;
  const decimal = document.querySelector("[name=decimal]").value;
  say("file-state", `Looking at ${seen.name} …`);
  $("columns").disabled = true;
  try {
    const found = await ask("GET", `/files/${seen.file}?decimal=${encodeURIComponent(decimal)}`);
    if (!last()) return;
    showColumns(found, seen);
    say("file-state", `${seen.name}, ${count(found.rows, "row")}`);
    say("ask-error", "");
    show("ask", focus ? "columns-title" : null);
  } finally {
    if (last()) $("columns").disabled = false;
  }
}

// The same file with another decimal separator.
async function lookAgain() {
  const last = begin();
  await look(false, last).catch((error) => last() && say("ask-error", error.message));
}

function mark() {
  let options = null;
  try {
    options = asked();
  } catch {} // what cannot be asked is not what was answered
  markAnswer(file, options);
}

// The field of a number, if what is in it is one that may be there.
function check(name) {
  const input = document.querySelector(`[name=${name}]`);
  if (input.checkValidity()) return input;
  const called = input.closest("label").querySelector("span").textContent;
  throw Object.assign(new Error(`${called}: ${input.validationMessage}`), { input });
}

function asked() {
  const form = new FormData($("ask"));
  const plain = ["effort", "errors", "names", "decimal"];
  const columns = ["weight", "y_error", "derivative", "by"];
  const numbers = ["time_budget", "tolerance", "seed", "max_samples"];
  const ticked = ["set_like", "scalars_per_point", "dropna"];
  const looked = form.getAll("look_for");
  const all = document.querySelectorAll("[name=look_for]").length;
  const output = form.get("output");
  const options = { file: file.file, ...chosen(), output: output === "sum" ? $("sum").value.trim() : output };
  if (output === "sum" && !options.output) throw new Error("Say which outputs there are, as scalar + vector.");
  for (const name of plain) options[name] = form.get(name);
  for (const name of columns) options[name] = form.get(name) ? [form.get(name)] : [];
  if (options.points !== null) check("points");
  if (options.x.length % (options.points ?? 1)) {
    throw new Error(`${count(options.x.length, "column")} of x cannot be shared out among ${options.points} vectors.`);
  }
  for (const name of numbers) {
    const input = check(name);
    options[name] = input.value === "" ? null : Number(input.value);
  }
  for (const name of ticked) options[name] = form.has(name) && !document.querySelector(`[name=${name}]`).closest("label").hidden;
  options.look_for = looked.length === all ? ["auto"] : looked.length ? looked : ["O"];
  if (options.derivative.length) options.y = [];
  if (options.points === 1) options.points = null;
  return options;
}

async function search(event) {
  event.preventDefault();
  if ($("start").disabled || $("columns").disabled) return;
  say("ask-error", "");
  $("start").disabled = true; // before the server knows: of a double click, the second is none
  try {
    const { run } = await ask("POST", "/runs", asked());
    remember("run", run);
    $("answer").hidden = true;
    await follow(run, true);
  } catch (error) {
    say("ask-error", error.message);
    const details = error.input?.closest("details");
    if (details) details.open = true;
    if (error.status === 409) { // another tab has begun one: this is it
      const ended = await follow(error.content.run, true).catch((failed) => failed);
      say("ask-error", ended?.message ?? "");
    }
  } finally {
    $("start").disabled = false;
  }
}

async function follow(run, focus) {
  $("start").disabled = true;
  $("stop").disabled = false;
  $("stop").onclick = async () => showState(await ask("POST", `/runs/${run}/stop`));
  try {
    let state = await ask("GET", `/runs/${run}`);
    if (!state.ended) show("progress", focus ? "progress-title" : null);
    while (!state.ended) {
      showState(state);
      await new Promise((go) => setTimeout(go, OFTEN));
      state = await ask("GET", `/runs/${run}`);
    }
    if (state.error) throw new Error(state.error);
    showAnswer(run, state.result, state.of, !file || file.file === state.of.asked.file);
    mark();
  } finally {
    $("start").disabled = false;
    $("progress").hidden = true;
    if ($("answer").hidden) document.title = "gortho";
  }
}

function showState(state) {
  const last = state.share >= 1 && state.stage !== "writing"; // how much is left is not known
  const stage = last ? STAGES.last : STAGES[state.stage] ?? state.stage;
  if ($("stage").textContent !== stage) say("stage", stage); // read aloud once
  say("seconds", `${Math.round(state.seconds)} s`);
  if (last) $("bar").removeAttribute("value");
  else $("bar").value = state.share;
  say("leading", state.line);
  say("progress-title", `${state.stopping ? "Stopping the search of" : "Searching"} ${state.of.name}`);
  say("stop", state.stopping ? "Stop at once" : "Stop");
  say("stop-help", state.stopping
    ? "The best form so far is being finished. “Stop at once” ends without a result."
    : "Stop keeps the best form so far.");
  document.title = `${Math.round(100 * state.share)} % · gortho`;
}

function listenToFiles() {
  $("file").addEventListener("change", () => {
    const [picked] = $("file").files;
    $("file").value = "";
    if (picked) takeFile(picked);
  });
  $("example").addEventListener("click", () => take(() => ask("POST", "/example")));
  // A file that is dropped beside the field must not replace the page.
  for (const kind of ["dragover", "drop"]) document.addEventListener(kind, (event) => event.preventDefault());
  document.addEventListener("dragover", () => $("drop").classList.add("over"));
  document.addEventListener("dragleave", (event) => event.relatedTarget ?? $("drop").classList.remove("over"));
  document.addEventListener("drop", (event) => {
    $("drop").classList.remove("over");
    const [dropped, second] = event.dataTransfer.files;
    if (second) say("file-error", "Drop one file at a time.");
    else if (dropped) takeFile(dropped);
  });
}

function takeFile(picked) {
  say("file-state", `Taking ${picked.name} …`);
  take(() => upload(picked));
}

// What this tab had; else the search that another tab has begun.
async function restore() {
  const last = begin();
  file = remembered("file");
  const run = remembered("run") ?? (await ask("GET", "/runs")).run;
  if (file && last()) await lookBack(file, run, last);
  if (run && last()) {
    await follow(run, false).catch((error) => {
      sessionStorage.removeItem("run");
      say(file ? "ask-error" : "file-error", error.message);
    });
  }
}

// The file of before, with what was asked of it.
async function lookBack(seen, run, last) {
  const of = run && (await ask("GET", `/runs/${run}`).catch(() => null))?.of;
  if (!last()) return;
  const options = of?.asked.file === seen.file ? of.asked : null;
  if (options) document.querySelector("[name=decimal]").value = options.decimal;
  try {
    await look(false, last);
    if (options && last()) choose(options);
  } catch (error) {
    if (!last()) return;
    say("file-state", "");
    say("file-error", error.status === 404 ? `${seen.name} is no longer here: drop it again.` : error.message);
    file = null;
    sessionStorage.removeItem("file");
  }
}

listenToFiles();
listenToColumns();
listenToAnswer(upload);
$("ask").addEventListener("submit", search);
$("ask").addEventListener("chosen", mark);
const decimal = document.querySelector("[name=decimal]");
decimal.addEventListener("change", lookAgain);
$("commas").querySelector("button").addEventListener("click", () => {
  decimal.value = ",";
  lookAgain();
});
restore();
