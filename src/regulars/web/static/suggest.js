// A list below a field with data-suggest while the user types (a combobox with options): results of the search, or values of
// a condition. What was typed is sent as a form, so that it stays out of addresses and of the history of the browser. An
// option is a link, or has the value that it writes into the field. Without this script, pages search when the form is sent.
"use strict";

const SUGGEST_DELAY_MS = 150;
const SUGGEST_TIMEOUT_MS = 8000;
const SUGGEST_GAP = 4;
const SUGGEST_HEIGHT_MAX = 520;

class SuggestionList {
  constructor() {
    this.panel = Object.assign(document.createElement("div"), { className: "find-panel", popover: "manual", role: "region", ariaLabel: "Results" });
    this.listbox = Object.assign(document.createElement("div"), { id: "suggestions", role: "listbox", ariaLabel: "Suggestions" });
    this.message = document.createElement("p");
    this.status = Object.assign(document.createElement("div"), { className: "only-read", role: "status" });
    this.panel.append(this.listbox, this.message);
    (document.querySelector("main") ?? document.body).append(this.panel, this.status);
    this.options = [];
    // A press on an option leaves the focus in the field, so that the panel stays until the click.
    this.panel.addEventListener("mousedown", (event) => event.preventDefault());
    this.panel.addEventListener("click", ({ target }) => {
      const option = target.closest("[role=option]");
      if (option && !option.href) this.choose(option);
    });
  }

  get isOpen() {
    return this.panel.matches(":popover-open");
  }

  prepare(field) {
    field.setAttribute("role", "combobox");
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-controls", this.listbox.id);
    field.setAttribute("aria-expanded", "false");
  }

  schedule(field, delayMs) {
    this.cancel();
    this.field = field;
    // A condition suggests something before the user has typed; the search does not.
    if (field.dataset.of || field.value.trim()) this.timer = setTimeout(() => this.request(), delayMs);
    else this.hide();
  }

  // A response to an earlier request is ignored.
  cancel() {
    clearTimeout(this.timer);
    this.isOutdated = this.isBusy;
    this.isWaiting = false;
  }

  // One request at a time: what was typed meanwhile is sent after the response.
  async request() {
    this.isWaiting = this.isBusy;
    if (this.isBusy) return;
    this.isBusy = true;
    const { field } = this;
    const results = await this.fetchResults(field);
    this.isBusy = false;
    const isCurrent = !this.isOutdated && document.activeElement === field;
    this.isOutdated = false;
    if (this.isWaiting) this.request();
    else if (isCurrent && results) this.render(results);
    else if (isCurrent) this.hide();
  }

  // Without results, such as after the session ended, the user can still submit the form.
  async fetchResults(field) {
    const { suggest, of, key = "" } = field.dataset;
    const data = of ? { of, key, typed: field.value, _token: field.form.elements._token.value } : new FormData(field.form);
    const options = { method: "POST", body: new URLSearchParams(data), credentials: "same-origin", redirect: "error", signal: AbortSignal.timeout(SUGGEST_TIMEOUT_MS) };
    const response = await fetch(suggest, options).catch(() => null);
    const html = response?.ok ? await response.text().catch(() => "") : "";
    return new DOMParser().parseFromString(html, "text/html").querySelector("[data-status]");
  }

  render(results) {
    this.listbox.replaceChildren(...document.adoptNode(results).children);
    this.options = [...this.listbox.querySelectorAll("[role=option]")];
    this.message.textContent = results.dataset.status;
    this.select(null);
    const count = this.options.length;
    this.status.textContent = results.dataset.status || (count ? `${count} ${count === 1 ? "suggestion" : "suggestions"}.` : "");
    if (count || results.dataset.status) this.show();
    else this.hide();
  }

  show() {
    this.listbox.hidden = !this.options.length;
    this.message.hidden = !this.message.textContent;
    if (!this.isOpen) this.panel.showPopover();
    this.listbox.scrollTop = 0;
    this.place();
    this.field.setAttribute("aria-expanded", String(this.options.length > 0));
  }

  // Below the field, or above it where there is more room; on a narrow screen as far to the left as the width needs.
  place() {
    const { left, top, bottom } = this.field.getBoundingClientRect();
    const below = innerHeight - bottom - 2 * SUGGEST_GAP;
    const above = top - 2 * SUGGEST_GAP;
    this.panel.style.maxHeight = `${SUGGEST_HEIGHT_MAX}px`;
    const isAbove = this.panel.offsetHeight > below && above > below;
    this.panel.style.maxHeight = `${Math.min(SUGGEST_HEIGHT_MAX, isAbove ? above : below)}px`;
    const { offsetWidth: width, offsetHeight: height } = this.panel;
    const right = document.documentElement.clientWidth - width - SUGGEST_GAP;
    this.panel.style.left = `${Math.max(SUGGEST_GAP, Math.min(left, right))}px`;
    this.panel.style.top = `${isAbove ? top - height - SUGGEST_GAP : bottom + SUGGEST_GAP}px`;
  }

  hide() {
    this.cancel();
    if (!this.isOpen) return;
    this.panel.hidePopover();
    this.field.setAttribute("aria-expanded", "false");
    this.select(null);
  }

  select(option) {
    for (const other of this.options) other.setAttribute("aria-selected", String(other === option));
    this.selected = option;
    if (option) this.field.setAttribute("aria-activedescendant", option.id);
    else this.field.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  }

  // After the last option comes the field itself, then the first one. A late response must not replace the list.
  move(step) {
    this.cancel();
    const places = this.options.length + 1;
    const place = (this.options.indexOf(this.selected) + 1 + step + places) % places;
    this.select(this.options[place - 1] ?? null);
  }

  // Fills the field as if the user had typed the value and left the field.
  choose(option) {
    const { field } = this;
    field.value = option.dataset.value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    this.hide();
    field.dataset.isChosen = "true";
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  onKey(event) {
    const isArrow = event.key === "ArrowDown" || event.key === "ArrowUp";
    if (isArrow && !this.isOpen) this.schedule(event.target, 0);
    else if (isArrow) this.move(event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Enter" && this.isOpen && this.selected) this.selected.click();
    else if (event.key === "Escape" && this.isOpen) this.hide();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

const findSuggestingField = (target) => target.closest?.("[data-suggest]");

function startSuggesting() {
  const list = new SuggestionList();
  document.addEventListener("focusin", ({ target }) => { if (findSuggestingField(target)) list.prepare(target); });
  document.addEventListener("focusout", () => list.hide());
  document.addEventListener("submit", () => list.hide());
  document.addEventListener("htmx:afterSwap", () => { if (list.field && !list.field.isConnected) list.hide(); });
  document.addEventListener("input", ({ target }) => {
    if (!findSuggestingField(target)) return;
    delete target.dataset.isChosen;
    list.schedule(target, SUGGEST_DELAY_MS);
  });
  document.addEventListener("click", ({ target }) => {
    if (findSuggestingField(target) && !list.isOpen) list.schedule(target, 0);
  });
  document.addEventListener("keydown", (event) => { if (findSuggestingField(event.target)) list.onKey(event); }, { capture: true });
  for (const name of ["scroll", "resize"]) {
    window.addEventListener(name, ({ target }) => { if (list.isOpen && target !== list.listbox) list.place(); }, { capture: true, passive: true });
  }
  if (findSuggestingField(document.activeElement)) list.prepare(document.activeElement);
}

if ("popover" in HTMLElement.prototype) startSuggesting();
