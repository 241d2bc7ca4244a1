// Restores what the user typed, chose or focused while a request was running, after its response replaced the fields.
"use strict";

const FIELDS = "input:not([type=hidden], [type=submit], [type=button], [type=file]), textarea, select";
const CHECKABLE_TYPES = ["checkbox", "radio"];
// By request: the field values that are newer than the request, and the field and caret of the user.
const pendingSwaps = new WeakMap();

// The same before and after a swap: the number of the condition with the name of the field, or the id of another field.
function fieldKey(field) {
  const condition = field.closest("[data-key]");
  return condition ? `${condition.dataset.key}~${field.name.split("~").pop()}` : field.id;
}

function findByKey(key) {
  return [...document.querySelectorAll(FIELDS)].find((field) => fieldKey(field) === key);
}

function fieldValue(field) {
  if (CHECKABLE_TYPES.includes(field.type)) return field.checked;
  return field.matches("select") ? [...field.selectedOptions].map((option) => option.value).join("\n") : field.value;
}

function renderedValue(field) {
  if (CHECKABLE_TYPES.includes(field.type)) return field.defaultChecked;
  if (!field.matches("select")) return field.defaultValue;
  const rendered = [...field.options].filter((option) => option.defaultSelected);
  if (!rendered.length && !field.multiple) rendered.push(...[...field.options].slice(0, 1));
  return rendered.map((option) => option.value).join("\n");
}

function setFieldValue(field, value) {
  if (CHECKABLE_TYPES.includes(field.type)) field.checked = value;
  else if (!field.matches("select")) field.value = value;
  else for (const option of field.options) option.selected = value.split("\n").includes(option.value);
}

function wasSent(field, formData) {
  const values = formData.getAll(field.name);
  if (CHECKABLE_TYPES.includes(field.type)) return values.includes(field.value) === field.checked;
  return field.matches("select") ? values.join("\n") === fieldValue(field) : values.includes(field.value);
}

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { elt, formData } = detail.requestConfig;
  const newerValues = new Map();
  for (const field of detail.target.querySelectorAll(FIELDS)) {
    const isNewer = fieldValue(field) !== renderedValue(field) && !wasSent(field, formData);
    if (isNewer && fieldKey(field)) newerValues.set(fieldKey(field), fieldValue(field));
  }
  const focused = document.activeElement;
  const isInField = focused?.matches(FIELDS) && focused !== elt;
  const caret = isInField ? { key: fieldKey(focused), from: focused.selectionStart, to: focused.selectionEnd } : null;
  pendingSwaps.set(detail.xhr, { newerValues, caret });
});

document.addEventListener("htmx:afterSwap", ({ target, detail }) => {
  const { newerValues, caret } = pendingSwaps.get(detail.xhr) ?? {};
  if (!newerValues) return;
  for (const [key, value] of newerValues) {
    const field = findByKey(key);
    if (field) setFieldValue(field, value);
  }
  if (!caret) return;
  // The new content must not move the focus away from the user's field.
  for (const element of target.querySelectorAll("[autofocus], [data-focus]")) {
    element.removeAttribute("autofocus");
    element.removeAttribute("data-focus");
  }
  const field = caret.key && findByKey(caret.key);
  if (!field) return;
  if (field !== document.activeElement) field.focus({ preventScroll: true });
  if (caret.from !== null && caret.from !== undefined) field.setSelectionRange(caret.from, caret.to);
});

// Once htmx listens to the new fields, sends the newer values as if the user had just typed them.
document.addEventListener("htmx:afterSettle", ({ detail }) => {
  const { newerValues } = pendingSwaps.get(detail.xhr) ?? {};
  pendingSwaps.delete(detail.xhr);
  for (const key of newerValues?.keys() ?? []) {
    const field = findByKey(key);
    if (!field) continue;
    const notifyChange = () => field.dispatchEvent(new Event("change", { bubbles: true }));
    field.dispatchEvent(new Event("input", { bubbles: true }));
    if (field !== document.activeElement || field.matches("select")) notifyChange();
    else field.addEventListener("blur", notifyChange, { once: true });
  }
});

// Adds a chosen option to the form at once, so that a second choice before the response does not replace the first. A
// text in a field with data-picks-choice is a search until the user chooses a suggestion.
document.addEventListener("change", ({ target }) => {
  const name = target.dataset.picks ?? (target.dataset.isChosen && target.dataset.picksChoice);
  if (!name || !target.value) return;
  const hiddenField = document.createElement("input");
  Object.assign(hiddenField, { type: "hidden", name, value: target.value });
  target.before(hiddenField);
}, { capture: true });
