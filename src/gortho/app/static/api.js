// What the server is asked, and small helpers of the page.

export const $ = (id) => document.getElementById(id);

// Answers as JSON; what cannot be done is an Error with the server's sentence.
export async function ask(method, path, body) {
  const options = { method };
  if (body instanceof Blob) options.body = body;
  else if (body !== undefined) options.body = JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer. Is gortho app still running?");
  }
  const text = await answer.text();
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    throw new Error(text || `The server answers ${answer.status}.`);
  }
  if (!answer.ok) throw Object.assign(new Error(content.error), { status: answer.status, content });
  return content;
}

// Of things begun one after another only the last counts: each call gives a function that says whether it still does.
export function turns() {
  let turn = 0;
  return () => {
    const mine = ++turn;
    return () => mine === turn;
  };
}

export function make(name, attributes = {}, ...inside) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);
  return element;
}

export function say(id, text) {
  $(id).textContent = text;
  if ($(id).matches(".error, .advice, .law")) $(id).hidden = !text;
}

export function show(id, focus) {
  $(id).hidden = false;
  if (focus) {
    $(focus).focus({ preventScroll: true });
    $(focus).scrollIntoView({ block: "start" });
  }
}

export const sentence = (words) => `${words[0].toUpperCase()}${words.slice(1)}. `;

export const count = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

export function bytes(size) {
  for (const unit of ["bytes", "kB", "MB"]) {
    if (size < 1000) return `${Number(size.toPrecision(3))} ${unit}`;
    size /= 1000;
  }
  return `${Number(size.toPrecision(3))} GB`;
}
