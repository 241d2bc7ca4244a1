// A text area whose places are chips: {{ profile.first_name | default("there") }} reads "first name, else there".
// The text area stays in the form with the text as it is stored; without a script it is written in as such.
"use strict";

const PLACE = /\{\{\s*([^|{}]+?)\s*(?:\|\s*default\s*\(\s*(?:"([^"]*)"|'([^']*)'|“([^”]*)”|‘([^’]*)’)\s*\)\s*)?\}\}/g;
const NEEDS_FALLBACK = /^profile\./;
// link("https://…") is a chip with the address of the link.
const LINK = /^link\s*\(\s*["'“‘](.*)["'”’]\s*\)$/;

const codeOf = (field, fallback) =>
  fallback === "" ? `{{ ${field} }}` : `{{ ${field} | default(${fallback.includes('"') ? `'${fallback}'` : `"${fallback}"`}) }}`;

class ChipEditor {
  constructor(area) {
    this.area = area;
    // The names of the places, as the list to choose from has them.
    this.names = new Map();
    for (const option of document.querySelectorAll(`${area.dataset.chips} option`)) {
      const [, field] = new RegExp(PLACE.source).exec(option.value) ?? [];
      if (field) this.names.set(field, option.textContent.replace(/^the customer's |^the |^attribute /, ""));
    }
    this.box = document.createElement("div");
    Object.assign(this.box, { className: "input chips", role: "textbox", ariaMultiLine: "true" });
    this.box.setAttribute("contenteditable", "plaintext-only");
    if (this.box.contentEditable !== "plaintext-only") this.box.contentEditable = "true";
    const [label] = area.labels;
    this.box.setAttribute("aria-labelledby", label.id);
    const at = document.activeElement === area ? area.selectionStart : null;
    for (const name of ["aria-describedby", "aria-invalid"]) if (area.hasAttribute(name)) this.box.setAttribute(name, area.getAttribute(name));
    this.tools = document.createElement("div");
    this.tools.className = "row chip-tools";
    this.tools.hidden = true;
    area.hidden = true;
    area.required = false;
    label.removeAttribute("for");
    label.addEventListener("click", () => this.box.focus());
    area.after(this.box, this.tools);
    this.draw();
    if (at !== null) this.goTo(at);
    this.box.addEventListener("input", () => this.write());
    this.box.addEventListener("click", ({ target }) => this.open(target.closest(".chip")));
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.box.addEventListener("blur", () => { this.range = this.caret(); });
    area.form.addEventListener("reset", () => setTimeout(() => this.draw()));
  }

  draw() {
    this.box.replaceChildren();
    let at = 0;
    for (const match of this.area.value.matchAll(PLACE)) {
      this.box.append(this.area.value.slice(at, match.index), this.chip(match[1], match.slice(2).find((it) => it !== undefined) ?? ""));
      at = match.index + match[0].length;
    }
    this.box.append(this.area.value.slice(at));
  }

  // To a position in the text as it is stored; whoever writes while the script comes stays where they were.
  goTo(at) {
    this.box.focus();
    for (const node of this.box.childNodes) {
      const length = this.textOf(node).length;
      if (at <= length && node.nodeType === Node.TEXT_NODE) {
        getSelection().collapse(node, at);
        return;
      }
      at -= length;
    }
    getSelection().collapse(this.box, this.box.childNodes.length);
  }

  chip(field, fallback) {
    const chip = document.createElement("span");
    chip.className = "chip";
    chip.contentEditable = "false";
    chip.tabIndex = 0;
    chip.setAttribute("role", "button");
    Object.assign(chip.dataset, { field, fallback });
    this.label(chip);
    return chip;
  }

  label(chip) {
    const { field, fallback } = chip.dataset;
    const [, url] = LINK.exec(field) ?? [];
    if (url !== undefined) {
      chip.textContent = `link to ${url.replace(/^https?:\/\//, "") || "…"}`;
      chip.title = "Change the address of the link";
      return;
    }
    const name = this.names.get(field) ?? field;
    chip.textContent = fallback ? `${name}, else “${fallback}”` : name;
    chip.classList.toggle("is-bare", fallback === "" && NEEDS_FALLBACK.test(field));
    chip.title = "Change what is written where the value is missing";
  }

  textOf(node) {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (node.matches?.(".chip")) return codeOf(node.dataset.field, node.dataset.fallback);
    if (node.nodeName === "BR") return "\n";
    const inside = [...node.childNodes].map((it) => this.textOf(it)).join("");
    return node !== this.box && node.previousSibling ? `\n${inside}` : inside;
  }

  // As if it had been typed into the area: it is counted, and marked as not counted yet.
  write() {
    this.area.value = this.textOf(this.box);
    this.area.dispatchEvent(new Event("input", { bubbles: true }));
  }

  caret() {
    const selection = getSelection();
    return selection.rangeCount && this.box.contains(selection.anchorNode) ? selection.getRangeAt(0).cloneRange() : this.range;
  }

  insert(code) {
    const [, field, ...fallbacks] = new RegExp(PLACE.source).exec(code);
    const chip = this.chip(field, fallbacks.find((it) => it !== undefined) ?? "");
    const range = this.caret();
    if (range) {
      range.deleteContents();
      range.insertNode(chip);
    } else {
      this.box.append(chip);
    }
    this.box.focus();
    getSelection().collapse(chip.parentNode, [...chip.parentNode.childNodes].indexOf(chip) + 1);
    this.write();
    if (LINK.test(field)) this.open(chip);
  }

  onKey(event) {
    const chip = event.target.closest?.(".chip");
    if (!chip || !["Enter", " ", "Delete", "Backspace"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "Enter" || event.key === " ") this.open(chip);
    else this.remove(chip);
  }

  remove(chip) {
    chip.remove();
    this.tools.hidden = true;
    this.box.focus();
    this.write();
  }

  // Edit the fallback of the variable or the address of the link, or remove it.
  open(chip) {
    this.tools.hidden = !chip;
    if (!chip) return;
    const [, url] = LINK.exec(chip.dataset.field) ?? [];
    const remove = Object.assign(document.createElement("button"), { type: "button", className: "button is-bare is-small", textContent: "Remove" });
    remove.addEventListener("click", () => this.remove(chip));
    // A link to opt out has nothing to change.
    if (chip.dataset.field.endsWith("()")) {
      this.tools.replaceChildren(remove);
      return;
    }
    const label = document.createElement("label");
    label.textContent = url === undefined ? `Fallback when ${this.names.get(chip.dataset.field) ?? chip.dataset.field} is missing ` : "Address of the link ";
    const input = Object.assign(document.createElement("input"), { className: "input is-small", value: url ?? chip.dataset.fallback, maxLength: url === undefined ? 100 : 1000 });
    input.addEventListener("input", () => {
      if (url === undefined) chip.dataset.fallback = input.value.replace(/[{}"]/g, "");
      else chip.dataset.field = `link("${input.value.replace(/[{}"|\s]/g, "")}")`;
      this.label(chip);
      this.write();
    });
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      this.tools.hidden = true;
      this.box.focus();
    });
    label.append(input);
    this.tools.replaceChildren(label, remove);
    input.focus();
  }
}

const editors = new WeakMap();

function makeChips(root) {
  for (const area of root.querySelectorAll("textarea[data-chips]")) {
    if (!editors.has(area)) editors.set(area, new ChipEditor(area));
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
document.addEventListener("htmx:load", (event) => makeChips(event.target));
makeChips(document);
