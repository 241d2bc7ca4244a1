// Shows the variables of a text as chips: {{ profile.first_name | default("there") }} reads "first name, else there".
// The hidden textarea holds the stored text and is submitted. Without this script the user edits the textarea itself.
"use strict";

const VARIABLE = /\{\{\s*([^|{}]+?)\s*(?:\|\s*default\s*\(\s*(?:"([^"]*)"|'([^']*)'|“([^”]*)”|‘([^’]*)’)\s*\)\s*)?\}\}/g;
const NEEDS_FALLBACK = /^profile\./;
// The chip of link("https://…") shows the address.
const LINK = /^link\s*\(\s*["'“‘](.*)["'”’]\s*\)$/;

const formatVariable = (field, fallback) =>
  fallback === "" ? `{{ ${field} }}` : `{{ ${field} | default(${fallback.includes('"') ? `'${fallback}'` : `"${fallback}"`}) }}`;

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
      this.box.append(this.textarea.value.slice(end, match.index), this.createChip(match[1], match.slice(2).find((text) => text !== undefined) ?? ""));
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

  createChip(field, fallback) {
    const chip = document.createElement("span");
    chip.className = "chip";
    chip.contentEditable = "false";
    chip.tabIndex = 0;
    chip.setAttribute("role", "button");
    Object.assign(chip.dataset, { field, fallback });
    this.updateLabel(chip);
    return chip;
  }

  updateLabel(chip) {
    const { field, fallback } = chip.dataset;
    const [, url] = LINK.exec(field) ?? [];
    if (url !== undefined) {
      chip.textContent = `link to ${url.replace(/^https?:\/\//, "") || "…"}`;
      chip.title = "Change the address of this link";
      return;
    }
    const label = this.labels.get(field) ?? field;
    chip.textContent = fallback ? `${label}, else “${fallback}”` : label;
    chip.classList.toggle("is-bare", fallback === "" && NEEDS_FALLBACK.test(field));
    chip.title = "Change the fallback for customers without this value";
  }

  serialize(node) {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (node.matches?.(".chip")) return formatVariable(node.dataset.field, node.dataset.fallback);
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
    const [, field, ...fallbacks] = new RegExp(VARIABLE.source).exec(code);
    const chip = this.createChip(field, fallbacks.find((text) => text !== undefined) ?? "");
    const range = this.caretRange();
    if (range) {
      range.deleteContents();
      range.insertNode(chip);
    } else {
      this.box.append(chip);
    }
    this.box.focus();
    getSelection().collapse(chip.parentNode, [...chip.parentNode.childNodes].indexOf(chip) + 1);
    this.syncTextarea();
    if (LINK.test(field)) this.openToolbar(chip);
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

  // Lets the user edit the fallback or the address of a chip, or remove the chip.
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
    const label = document.createElement("label");
    label.textContent = url === undefined ? `Fallback when ${this.labels.get(chip.dataset.field) ?? chip.dataset.field} is missing ` : "Address of the link ";
    const input = Object.assign(document.createElement("input"), { className: "input is-small", value: url ?? chip.dataset.fallback, maxLength: url === undefined ? 100 : 1000 });
    input.addEventListener("input", () => {
      if (url === undefined) chip.dataset.fallback = input.value.replace(/[{}"]/g, "");
      else chip.dataset.field = `link("${input.value.replace(/[{}"|\s]/g, "")}")`;
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
    this.toolbar.replaceChildren(label, remove);
    input.focus();
  }
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
