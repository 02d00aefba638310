// From a file to an answer.

import { $, ask, bytes, count, say, show } from "./api.js";
import { listenToAnswer, showAnswer } from "./answer.js";
import { chosen, listenToColumns, showColumns } from "./columns.js";

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
  say("file-error", "");
  document.querySelector("[name=decimal]").value = ".";
  $("ask").hidden = $("answer").hidden = true;
  try {
    file = null;
    file = await stored();
    remember("file", file);
    await look(true);
  } catch (error) {
    say("file-state", "");
    say("file-error", error.message);
  }
}

async function look(focus) {
  say("file-state", `Looking at ${file.name} …`);
  const decimal = document.querySelector("[name=decimal]").value;
  const found = await ask("GET", `/files/${file.file}?decimal=${encodeURIComponent(decimal)}`);
  showColumns(found, file);
  say("file-state", `${file.name}, ${count(found.rows, "row")}`);
  say("ask-error", "");
  show("ask", focus ? "columns-title" : null);
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
  for (const name of numbers) {
    const input = document.querySelector(`[name=${name}]`);
    if (!input.checkValidity()) {
      $("more").open = true;
      throw new Error(`${input.closest("label").querySelector("span").textContent}: ${input.validationMessage}`);
    }
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
  say("ask-error", "");
  try {
    const options = asked();
    const { run } = await ask("POST", "/runs", options);
    remember("run", { run, file, decimal: options.decimal });
    $("answer").hidden = true;
    show("progress", "progress-title");
    await follow(run, file, options.decimal);
  } catch (error) {
    $("progress").hidden = true;
    say("ask-error", error.message);
  }
}

async function follow(run, ofFile, decimal) {
  $("start").disabled = true;
  $("stop").disabled = false;
  $("stop").onclick = async () => showState(await ask("POST", `/runs/${run}/stop`));
  try {
    let state = await ask("GET", `/runs/${run}`);
    while (!state.ended) {
      showState(state);
      await new Promise((go) => setTimeout(go, OFTEN));
      state = await ask("GET", `/runs/${run}`);
    }
    if (state.error) throw new Error(state.error);
    showAnswer(run, state.result, ofFile, decimal);
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
  say("progress-title", state.stopping ? "Stopping" : "Searching");
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

async function restore() {
  const run = remembered("run");
  file = remembered("file");
  try {
    if (file) await look(false);
  } catch {
    say("file-state", "");
    sessionStorage.clear(); // of a server that has ended
    return;
  }
  if (run) {
    $("progress").hidden = false;
    await follow(run.run, run.file, run.decimal).catch((error) => say("ask-error", error.message));
  }
}

listenToFiles();
listenToColumns();
listenToAnswer(upload);
$("ask").addEventListener("submit", search);
const decimal = document.querySelector("[name=decimal]");
decimal.addEventListener("change", () => look(false).catch((error) => say("ask-error", error.message)));
$("commas").addEventListener("click", () => {
  decimal.value = ",";
  decimal.dispatchEvent(new Event("change"));
});
restore();
