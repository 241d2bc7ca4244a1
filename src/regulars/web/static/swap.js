// What somebody does while an answer is on its way outlives it: the answer was made without knowing.
"use strict";

const FIELDS = "input:not([type=hidden], [type=submit], [type=button], [type=file]), textarea, select";
const TICKED = ["checkbox", "radio"];
// Of each answer that is being put in place: what it did not know, and where whoever types is.
const known = new WeakMap();

// The same field before and after: a condition keeps its number wherever it moves to, anything else its id.
function keyOf(field) {
  const owner = field.closest("[data-key]");
  return owner ? `${owner.dataset.key}~${field.name.split("~").pop()}` : field.id;
}

function findByKey(key) {
  return [...document.querySelectorAll(FIELDS)].find((field) => keyOf(field) === key);
}

function valueOf(field) {
  if (TICKED.includes(field.type)) return field.checked;
  return field.matches("select") ? [...field.selectedOptions].map((option) => option.value).join("\n") : field.value;
}

function drawnValueOf(field) {
  if (TICKED.includes(field.type)) return field.defaultChecked;
  if (!field.matches("select")) return field.defaultValue;
  const drawn = [...field.options].filter((option) => option.defaultSelected);
  if (!drawn.length && !field.multiple) drawn.push(...[...field.options].slice(0, 1));
  return drawn.map((option) => option.value).join("\n");
}

function put(field, value) {
  if (TICKED.includes(field.type)) field.checked = value;
  else if (!field.matches("select")) field.value = value;
  else for (const option of field.options) option.selected = value.split("\n").includes(option.value);
}

function wasSent(field, sent) {
  const values = sent.getAll(field.name);
  if (TICKED.includes(field.type)) return values.includes(field.value) === field.checked;
  return field.matches("select") ? values.join("\n") === valueOf(field) : values.includes(field.value);
}

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { elt, formData } = detail.requestConfig;
  const newer = new Map();
  for (const field of detail.target.querySelectorAll(FIELDS)) {
    const isNewer = valueOf(field) !== drawnValueOf(field) && !wasSent(field, formData);
    if (isNewer && keyOf(field)) newer.set(keyOf(field), valueOf(field));
  }
  const here = document.activeElement;
  const isInField = here?.matches(FIELDS) && here !== elt;
  const at = isInField ? { key: keyOf(here), from: here.selectionStart, to: here.selectionEnd } : null;
  known.set(detail.xhr, { newer, at });
});

document.addEventListener("htmx:afterSwap", ({ target, detail }) => {
  const { newer, at } = known.get(detail.xhr) ?? {};
  if (!newer) return;
  for (const [key, value] of newer) {
    const field = findByKey(key);
    if (field) put(field, value);
  }
  if (!at) return;
  // Whoever is in a field stays in it, whatever came asks for.
  for (const part of target.querySelectorAll("[autofocus], [data-focus]")) {
    part.removeAttribute("autofocus");
    part.removeAttribute("data-focus");
  }
  const field = at.key && findByKey(at.key);
  if (!field) return;
  if (field !== document.activeElement) field.focus({ preventScroll: true });
  if (at.from !== null && at.from !== undefined) field.setSelectionRange(at.from, at.to);
});

// The new fields can be heard by now: what the answer did not know is sent as if it had just been typed.
document.addEventListener("htmx:afterSettle", ({ detail }) => {
  const { newer } = known.get(detail.xhr) ?? {};
  known.delete(detail.xhr);
  for (const key of newer?.keys() ?? []) {
    const field = findByKey(key);
    if (!field) continue;
    const change = () => field.dispatchEvent(new Event("change", { bubbles: true }));
    field.dispatchEvent(new Event("input", { bubbles: true }));
    if (field !== document.activeElement || field.matches("select")) change();
    else field.addEventListener("blur", change, { once: true });
  }
});

// What is picked is in the form at once, so that the next pick does not take its place before the answer comes.
document.addEventListener("change", ({ target }) => {
  if (!target.dataset.picks || !target.value) return;
  const picked = document.createElement("input");
  Object.assign(picked, { type: "hidden", name: target.dataset.picks, value: target.value });
  target.before(picked);
}, { capture: true });
