// Shows the variables of a text as chips: {{ profile.first_name | default("you") }} reads "first name, else “you”", and
// {{ profile.first_name | before(" ") }} reads "first name, else nothing".
// The hidden textarea holds the stored text and is submitted. Without this script the user edits the textarea itself.
"use strict";

const VARIABLE = /\{\{\s*([^|{}]+?)\s*(?:\|\s*(default|before)\s*\(\s*(?:"([^"]*)"|'([^']*)'|“([^”]*)”|‘([^’]*)’)\s*\)\s*)?\}\}/g;
const NEEDS_FALLBACK = /^profile\./;
// The chip of link("https://…") shows the address.
const LINK = /^link\s*\(\s*["'“‘](.*)["'”’]\s*\)$/;

// A variable of the text: its field, its filter if it has one, and the text of the filter.
const readVariable = ([, field, filter = "", ...texts]) => ({ field, filter, text: texts.find((text) => text !== undefined) ?? "" });
const quote = (text) => (text.includes('"') ? `'${text}'` : `"${text}"`);
const formatVariable = ({ field, filter, text }) =>
  filter === "before" || text !== "" ? `{{ ${field} | ${filter}(${quote(text)}) }}` : `{{ ${field} }}`;

class ChipEditor {
  constructor(textarea) {
    this.textarea = textarea;
    // The label of each field, from the list in which the user chooses a variable.
    this.labels = new Map();
    for (const option of document.querySelectorAll(`${textarea.dataset.chips} option`)) {
      const [, field] = new RegExp(VARIABLE.source).exec(option.value) ?? [];
      if (field) this.labels.set(field, option.textContent.replace(/^the customer's |^the |^attribute /, ""));
    }
    this.box = document.createElement("div");
    Object.assign(this.box, { className: "input chips", role: "textbox", ariaMultiLine: "true" });
    this.box.setAttribute("contenteditable", "plaintext-only");
    if (this.box.contentEditable !== "plaintext-only") this.box.contentEditable = "true";
    const [label] = textarea.labels;
    this.box.setAttribute("aria-labelledby", label.id);
    const caretOffset = document.activeElement === textarea ? textarea.selectionStart : null;
    for (const name of ["aria-describedby", "aria-invalid"]) if (textarea.hasAttribute(name)) this.box.setAttribute(name, textarea.getAttribute(name));
    this.toolbar = document.createElement("div");
    this.toolbar.className = "row chip-tools";
    this.toolbar.hidden = true;
    textarea.hidden = true;
    textarea.required = false;
    label.removeAttribute("for");
    label.addEventListener("click", () => this.box.focus());
    textarea.after(this.box, this.toolbar);
    this.render();
    if (caretOffset !== null) this.moveCaret(caretOffset);
    this.box.addEventListener("input", () => this.syncTextarea());
    this.box.addEventListener("click", ({ target }) => this.openToolbar(target.closest(".chip")));
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.box.addEventListener("blur", () => { this.lastRange = this.caretRange(); });
    textarea.form.addEventListener("reset", () => setTimeout(() => this.render()));
  }

  render() {
    this.box.replaceChildren();
    let end = 0;
    for (const match of this.textarea.value.matchAll(VARIABLE)) {
      this.box.append(this.textarea.value.slice(end, match.index), this.createChip(readVariable(match)));
      end = match.index + match[0].length;
    }
    this.box.append(this.textarea.value.slice(end));
  }

  // Moves the caret to an offset in the stored text, so that a user who typed before this script ran continues there.
  moveCaret(offset) {
    this.box.focus();
    for (const node of this.box.childNodes) {
      const length = this.serialize(node).length;
      if (offset <= length && node.nodeType === Node.TEXT_NODE) {
        getSelection().collapse(node, offset);
        return;
      }
      offset -= length;
    }
    getSelection().collapse(this.box, this.box.childNodes.length);
  }

  createChip(variable) {
    const chip = document.createElement("span");
    chip.className = "chip";
    chip.contentEditable = "false";
    chip.tabIndex = 0;
    chip.setAttribute("role", "button");
    Object.assign(chip.dataset, variable);
    this.updateLabel(chip);
    return chip;
  }

  updateLabel(chip) {
    const { field, filter, text } = chip.dataset;
    const [, url] = LINK.exec(field) ?? [];
    if (url !== undefined) {
      chip.textContent = `link to ${url.replace(/^https?:\/\//, "") || "…"}`;
      chip.title = "Change the address of this link";
      return;
    }
    const label = this.labels.get(field) ?? field;
    if (filter === "before") chip.textContent = `${text.trim() ? `${text.trim()} ` : ""}${label}, else nothing`;
    else chip.textContent = text ? `${label}, else “${text}”` : label;
    chip.classList.toggle("is-bare", filter !== "before" && text === "" && NEEDS_FALLBACK.test(field));
    chip.title = "Change what customers without this value get";
  }

  serialize(node) {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (node.matches?.(".chip")) return formatVariable(node.dataset);
    if (node.nodeName === "BR") return "\n";
    const content = [...node.childNodes].map((child) => this.serialize(child)).join("");
    return node !== this.box && node.previousSibling ? `\n${content}` : content;
  }

  // The input event makes live.js mark the old count as outdated, and htmx request a new one.
  syncTextarea() {
    this.textarea.value = this.serialize(this.box);
    this.textarea.dispatchEvent(new Event("input", { bubbles: true }));
  }

  caretRange() {
    const selection = getSelection();
    return selection.rangeCount && this.box.contains(selection.anchorNode) ? selection.getRangeAt(0).cloneRange() : this.lastRange;
  }

  insert(code) {
    const variable = readVariable(new RegExp(VARIABLE.source).exec(code));
    const chip = this.createChip(variable);
    const range = this.caretRange();
    if (range) {
      range.deleteContents();
      range.insertNode(chip);
    } else {
      this.box.append(chip);
    }
    if (variable.filter === "before") takeTextBefore(chip, / *$/);
    this.box.focus();
    getSelection().collapse(chip.parentNode, [...chip.parentNode.childNodes].indexOf(chip) + 1);
    this.syncTextarea();
    if (LINK.test(variable.field)) this.openToolbar(chip);
  }

  onKey(event) {
    const chip = event.target.closest?.(".chip");
    if (!chip || !["Enter", " ", "Delete", "Backspace"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "Enter" || event.key === " ") this.openToolbar(chip);
    else this.remove(chip);
  }

  remove(chip) {
    chip.remove();
    this.toolbar.hidden = true;
    this.box.focus();
    this.syncTextarea();
  }

  // Lets the user edit the address of a link or what customers without the value get, or remove the chip.
  openToolbar(chip) {
    this.toolbar.hidden = !chip;
    if (!chip) return;
    const [, url] = LINK.exec(chip.dataset.field) ?? [];
    const remove = Object.assign(document.createElement("button"), { type: "button", className: "button is-bare is-small", textContent: "Remove" });
    remove.addEventListener("click", () => this.remove(chip));
    // An opt-out link has nothing to edit.
    if (chip.dataset.field.endsWith("()")) {
      this.toolbar.replaceChildren(remove);
      return;
    }
    const name = this.labels.get(chip.dataset.field) ?? chip.dataset.field;
    const isLeftOut = chip.dataset.filter === "before";
    const label = document.createElement("label");
    label.textContent = url !== undefined ? "Address of the link " : isLeftOut ? `Text before ${name}, left out with it ` : `Fallback when ${name} is missing `;
    const input = Object.assign(document.createElement("input"), { className: "input is-small", value: url ?? chip.dataset.text, maxLength: url === undefined ? 100 : 1000 });
    input.addEventListener("input", () => {
      if (url !== undefined) chip.dataset.field = `link("${input.value.replace(/[{}"|\s]/g, "")}")`;
      else Object.assign(chip.dataset, { filter: isLeftOut ? "before" : "default", text: input.value.replace(/[{}"]/g, "") });
      this.updateLabel(chip);
      this.syncTextarea();
    });
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      this.toolbar.hidden = true;
      this.box.focus();
    });
    label.append(input);
    this.toolbar.replaceChildren(label, ...(url === undefined ? [this.createFilterButton(chip, isLeftOut)] : []), remove);
    input.focus();
  }

  // A variable either has a fallback, or is left out with the text before it.
  createFilterButton(chip, isLeftOut) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "button is-bare is-small", textContent: isLeftOut ? "Write a fallback instead" : "Leave it out instead" });
    button.addEventListener("click", () => {
      if (isLeftOut) {
        chip.before(chip.dataset.text);
        Object.assign(chip.dataset, { filter: "", text: "" });
      } else {
        Object.assign(chip.dataset, { filter: "before", text: "" });
        takeTextBefore(chip, /[\s,;:]*$/);
      }
      this.updateLabel(chip);
      this.syncTextarea();
      this.openToolbar(chip);
    });
    return button;
  }
}

// Moves the end of the text before a chip into the chip, so that it is left out with a missing value.
function takeTextBefore(chip, end) {
  const node = chip.previousSibling;
  if (node?.nodeType !== Node.TEXT_NODE) return;
  const [taken] = end.exec(node.data);
  if (!taken) return;
  node.data = node.data.slice(0, node.data.length - taken.length);
  chip.dataset.text = taken.replace(/\s+/g, " ");
}

const editors = new WeakMap();

function createEditors(root) {
  for (const textarea of root.querySelectorAll("textarea[data-chips]")) {
    if (!editors.has(textarea)) editors.set(textarea, new ChipEditor(textarea));
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-insert]");
  const editor = button && editors.get(document.querySelector(button.dataset.into));
  if (!editor) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  editor.insert(document.querySelector(button.dataset.insert).value);
}, { capture: true });
document.addEventListener("htmx:load", (event) => createEditors(event.target));
createEditors(document);
