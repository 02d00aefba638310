// The columns of a file, and what each of them is.

import { $, bytes, count, make, sentence } from "./api.js";

const ROLES = ["off", "x", "y", "scalar"];
const NUMBERS = ["numbers", "whole numbers", "logical"];
let look = null;
let chosenByHand = false; // the output

export function showColumns(found, file) {
  look = found;
  chosenByHand = false;
  const thing = look.arrays ? "array" : "column";
  const told = look.looked_at && look.looked_at < look.rows
    ? ` Kinds and ranges are those of the first ${look.looked_at.toLocaleString("en")} rows.` : "";
  $("file-facts").textContent =
    `${file.name} is ${look.called} of ${bytes(file.size)} with ${count(look.rows, "row")} ` +
    `and ${count(look.columns.length, thing)}.${told} ${look.notices.map(sentence).join("")}`;
  $("columns").replaceChildren(...look.columns.map(row));
  $("commas").hidden = !look.columns.some((column) => column.commas);
  $("vectors").hidden = look.arrays;
  $("all").hidden = look.arrays;
  for (const select of document.querySelectorAll("select[data-columns]")) {
    const names = look.columns.map((column) => make("option", { value: column.name }, column.name));
    select.replaceChildren(make("option", { value: "" }, "none"), ...names);
  }
  document.querySelector("[name=points]").value = 1;
  // What was said of another file.
  document.querySelector("[name=names]").value = $("sum").value = "";
  for (const name of ["dropna", "set_like", "scalars_per_point"]) document.querySelector(`[name=${name}]`).checked = false;
  changed();
}

function row(column, index) {
  const suggested = look.x.includes(column.name) ? "x" : look.y.includes(column.name) ? "y" : "off";
  const roles = make("div", { class: "roles" }, ...ROLES.map((role) => {
    const input = make("input", { type: "radio", name: `role-${index}`, value: role });
    input.checked = role === suggested;
    input.disabled = !possible(column, role);
    return make("label", {}, input, make("span", {}, role));
  }));
  const facts = make("div", { class: "facts" }, describe(column));
  if (column.note) facts.append(make("span", { class: "note" }, column.note));
  return make("fieldset", { class: "column" }, make("legend", {}, column.name), facts, roles);
}

// Text can be a label; what cannot be read can be nothing.
function possible(column, role) {
  if (role === "off" || NUMBERS.includes(column.kind)) return true;
  return role === "y" && ["text", "dates", "mixed"].includes(column.kind);
}

const number = (value) => Number(value.toPrecision(4)).toString();

function describe(column) {
  const parts = [column.kind];
  if (column.shape) parts.push(column.shape.join(" × ") || "a single value", column.dtype);
  if (column.low !== null) parts.push(`${number(column.low)} to ${number(column.high)}`);
  if (column.examples.length) parts.push(column.examples.join(", "));
  if (column.missing) parts.push(`${column.missing} missing`);
  return parts.join(" · ");
}

// The columns of a role, less those that an option has taken.
function named(role) {
  const inputs = [...document.querySelectorAll(`#columns input[value=${role}]`)];
  const taken = [...document.querySelectorAll("select[data-columns]")].map((select) => select.value);
  const names = look.columns.filter((_, index) => inputs[index].checked).map((column) => column.name);
  return names.filter((name) => !taken.includes(name));
}

// Columns vector by vector: by the numbers at the end of their names where these fit, else as they stand.
export function byVector(names, points) {
  const parts = names.map((name) => name.match(/^(.*?)_?(\d+)$/));
  if (points > 1 && parts.every(Boolean)) {
    const groups = new Map();
    parts.forEach(([name, stem, place]) => {
      groups.set(Number(place), [...(groups.get(Number(place)) ?? []), { name, stem }]);
    });
    const vectors = [...groups.keys()].sort((a, b) => a - b).map((place) => groups.get(place));
    const stems = vectors.map((vector) => vector.map(({ stem }) => stem).sort().join());
    if (vectors.length === points && new Set(stems).size === 1) {
      const order = vectors[0].map(({ stem }) => stem);
      return vectors.flatMap((vector) => order.map((stem) => vector.find((one) => one.stem === stem).name));
    }
  }
  return names;
}

// What was asked before, chosen again.
export function choose(options) {
  look.columns.forEach(({ name }, index) => {
    const part = ["x", "y", "scalars"].find((one) => options[one].includes(name));
    const role = part === "scalars" ? "scalar" : part;
    document.querySelector(`[name=role-${index}][value=${role ?? "off"}]`).checked = true;
  });
  chosenByHand = true;
  const listed = document.querySelector(`[name=output][value="${CSS.escape(options.output)}"]`);
  pick(listed ? options.output : "sum");
  $("sum").value = listed ? "" : options.output;
  for (const input of document.querySelectorAll("#ask [name]")) {
    const value = options[input.name];
    if (value === undefined || input.type === "radio") continue;
    if (input.name === "look_for") input.checked = value.includes("auto") || value.includes(input.value);
    else if (input.type === "checkbox") input.checked = value;
    else input.value = (Array.isArray(value) ? value[0] : value) ?? (input.name === "points" ? 1 : "");
  }
  changed();
}

export function chosen() {
  const points = look.arrays ? null : Number(document.querySelector("[name=points]").value || 1);
  return { x: byVector(named("x"), points ?? 1), y: named("y"), scalars: named("scalar"), points };
}

// What was chosen, in words; and the output that it suggests, until one is clicked.
export function changed() {
  const { x, y, scalars, points } = chosen();
  const time = document.querySelector("[name=derivative]").value;
  const size = x.length / (points ?? 1);
  let words = `x = (${x.join(", ")})`;
  if (!x.length) words = "Nothing is chosen for x yet";
  else if (points !== null && !(points >= 1)) words = "There is at least one vector in each row";
  else if (points > 1 && !Number.isInteger(size)) {
    words = `${count(x.length, "column")} of x cannot be shared out among ${points} vectors`;
  } else if (points > 1) {
    const vectors = Array.from({ length: points }, (_, k) => x.slice(k * size, (k + 1) * size));
    words = vectors.map((vector, k) => `vector ${k + 1} = (${vector.join(", ")})`).join("; ");
  }
  const target = time ? `dx/d${time}` : y.join(", ") || "not chosen yet";
  $("choice").textContent =
    `${words}; y = ${target}${scalars.length ? `; scalars: ${scalars.join(", ")}` : ""}.`;
  const several = points > 1;
  for (const name of ["set_like", "scalars_per_point"]) {
    document.querySelector(`[name=${name}]`).closest("label").hidden = !several;
  }
  if (!chosenByHand) pick(suggestedOutput(x, y, size, time));
  $("ask").dispatchEvent(new Event("chosen"));
}

// A vector has as many components as those of x: columns, or the last axis of an array.
function suggestedOutput(x, y, size, time) {
  const targets = look.columns.filter((column) => y.includes(column.name));
  const vectors = look.columns.find((column) => column.name === x[0]);
  const [components, wanted] = look.arrays
    ? [targets.length === 1 && targets[0].shape.length === 2 ? targets[0].shape[1] : 1, vectors?.shape.at(-1)]
    : [targets.length, size];
  if (time || (components > 1 && components === wanted)) return "vector";
  return targets.length === 1 && !targets[0].kind.endsWith("numbers") ? "class" : "scalar";
}

function pick(output) {
  document.querySelector(`[name=output][value=${output}]`).checked = true;
}

export function listenToColumns() {
  $("ask").addEventListener("input", (event) => {
    if (event.target.name === "output" || event.target.id === "sum") chosenByHand = true;
    if (event.target.id === "sum") pick("sum");
    changed();
  });
  for (const button of document.querySelectorAll("[data-all]")) {
    button.addEventListener("click", () => {
      look.columns.forEach((column, index) => {
        const role = column.kind.endsWith("numbers") ? button.dataset.all : "off";
        document.querySelector(`[name=role-${index}][value=${role}]`).checked = true;
      });
      changed();
    });
  }
}
