// Suggestions below a field with data-suggest: what the user types is sent to that address, with data-of (what is suggested)
// and data-key, and the list in the response is shown. Without this script the page searches when the form is sent.
"use strict";

const SUGGEST_DELAY_MS = 120;
const SUGGEST_DEADLINE_MS = 5000;
const SUGGEST_MARGIN_PX = 8;

class SuggestionList {
  constructor() {
    this.box = Object.assign(document.createElement("div"), { className: "suggestions", hidden: true });
    this.list = Object.assign(document.createElement("ul"), { id: "suggestions", role: "listbox" });
    this.note = Object.assign(document.createElement("p"), { className: "quiet small" });
    this.status = Object.assign(document.createElement("div"), { className: "only-read", role: "status" });
    this.box.append(this.list, this.note);
    document.body.append(this.box, this.status);
    // In the top layer no card or panel clips the list.
    if (this.box.showPopover) this.box.popover = "manual";
    this.field = null;
  }

  get isOpen() {
    return !this.box.hidden;
  }

  get active() {
    return this.list.querySelector("[aria-selected=true]");
  }

  prepare(field) {
    const state = { role: "combobox", ariaAutoComplete: "list", ariaExpanded: "false" };
    Object.assign(field, state);
    field.setAttribute("aria-controls", this.list.id);
  }

  // Requests the suggestions for the text of a field, after a pause in typing.
  schedule(field, delayMs) {
    this.cancel();
    this.timer = setTimeout(() => this.request(field), delayMs);
  }

  cancel() {
    clearTimeout(this.timer);
    this.controller?.abort();
  }

  async request(field) {
    const controller = new AbortController();
    this.controller = controller;
    const deadline = setTimeout(() => controller.abort(), SUGGEST_DEADLINE_MS);
    const { suggest, of, key = "" } = field.dataset;
    const body = new URLSearchParams({ of, key, typed: field.value, _token: field.form.elements._token.value });
    const page = await fetch(suggest, { method: "POST", body, credentials: "same-origin", signal: controller.signal })
      .then(async (response) => new DOMParser().parseFromString(await response.text(), "text/html"))
      .catch(() => null);
    clearTimeout(deadline);
    if (this.controller !== controller || document.activeElement !== field) return;
    // A page without a list, such as the sign-in page, suggests nothing.
    const list = page?.querySelector("[role=listbox]");
    if (list) this.open(field, list);
    else this.close();
  }

  open(field, list) {
    const message = list.nextElementSibling.textContent;
    this.field = field;
    this.list.replaceChildren(...list.children);
    this.list.setAttribute("aria-label", field.getAttribute("aria-label"));
    this.list.hidden = !this.list.children.length;
    this.note.textContent = message;
    this.note.hidden = !message;
    const count = this.list.children.length;
    this.status.textContent = count ? `${count} ${count === 1 ? "suggestion" : "suggestions"}. ${message}` : message;
    if (!count && !message) {
      this.close();
      return;
    }
    this.box.hidden = false;
    this.box.showPopover?.();
    this.box.scrollTop = 0;
    this.place();
    field.ariaExpanded = "true";
    field.removeAttribute("aria-activedescendant");
  }

  close() {
    this.cancel();
    if (!this.isOpen) return;
    this.box.hidePopover?.();
    this.box.hidden = true;
    this.field.ariaExpanded = "false";
    this.field.removeAttribute("aria-activedescendant");
  }

  // Below the field, or above it where there is more room.
  place() {
    const { left, top, bottom } = this.field.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.box;
    const isAbove = bottom + height > innerHeight - SUGGEST_MARGIN_PX && top > innerHeight - bottom;
    this.box.style.left = `${Math.max(SUGGEST_MARGIN_PX, Math.min(left, innerWidth - width - SUGGEST_MARGIN_PX))}px`;
    this.box.style.top = `${isAbove ? Math.max(SUGGEST_MARGIN_PX, top - height - 4) : bottom + 4}px`;
  }

  // A late response must not replace the list in which the user moves.
  move(step) {
    this.cancel();
    const options = [...this.list.children];
    const next = options.at((options.indexOf(this.active) + step + (this.active || step > 0 ? 0 : 1)) % options.length);
    this.active?.removeAttribute("aria-selected");
    next.setAttribute("aria-selected", "true");
    next.scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", next.id);
  }

  // Fills the field as if the user had typed the value and left the field.
  choose(option) {
    const { field } = this;
    this.close();
    field.value = option.dataset.value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    this.cancel();
    field.dataset.isChosen = "true";
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  onKey(event) {
    const isArrow = event.key === "ArrowDown" || event.key === "ArrowUp";
    if (isArrow && !this.isOpen) this.schedule(event.target, 0);
    else if (isArrow && this.list.children.length) this.move(event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Enter" && this.isOpen && this.active) this.choose(this.active);
    else if (event.key === "Escape" && this.isOpen) this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

const suggestions = new SuggestionList();
const suggestingField = ({ target }) => target.closest?.("[data-suggest]");

document.addEventListener("focusin", (event) => {
  if (suggestingField(event)) suggestions.prepare(event.target);
});
document.addEventListener("focusout", () => suggestions.close());
document.addEventListener("htmx:afterSwap", () => {
  if (suggestions.field && !suggestions.field.isConnected) suggestions.close();
});
document.addEventListener("input", (event) => {
  if (!suggestingField(event)) return;
  delete event.target.dataset.isChosen;
  suggestions.schedule(event.target, SUGGEST_DELAY_MS);
});
document.addEventListener("click", (event) => {
  if (suggestingField(event) && !suggestions.isOpen) suggestions.schedule(event.target, 0);
});
document.addEventListener("keydown", (event) => {
  if (suggestingField(event)) suggestions.onKey(event);
}, { capture: true });
// The field keeps the focus while the user points at the list.
suggestions.box.addEventListener("mousedown", (event) => event.preventDefault());
suggestions.box.addEventListener("click", ({ target }) => {
  const option = target.closest("[role=option]");
  if (option) suggestions.choose(option);
});
for (const name of ["scroll", "resize"]) {
  window.addEventListener(name, ({ target }) => {
    if (suggestions.isOpen && target !== suggestions.box) suggestions.place();
  }, { capture: true, passive: true });
}
if (suggestingField({ target: document.activeElement })) suggestions.prepare(document.activeElement);
