// Shows results below a search field while the user types (a combobox with a list of options). Enter without a chosen
// result submits the form, which also works without this script.
"use strict";

const FIND_DELAY_MS = 200;
const FIND_TIMEOUT_MS = 8000;
const PANEL_GAP = 4;
const PANEL_HEIGHT_MAX = 520;
let panelCount = 0;

class Finder {
  constructor(form) {
    this.form = form;
    this.input = form.querySelector("input[type=search]");
    this.createPanel();
    this.input.setAttribute("role", "combobox");
    this.input.setAttribute("aria-autocomplete", "list");
    this.input.setAttribute("aria-controls", this.listbox.id);
    this.input.setAttribute("aria-expanded", "false");
    this.input.addEventListener("input", () => this.onInput());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    this.input.addEventListener("focus", () => { if (this.status.textContent) this.show(); });
    this.input.addEventListener("blur", () => this.hide());
    form.addEventListener("submit", () => this.stop());
    // A press on a result leaves the focus in the field, so that the panel stays until the click.
    this.panel.addEventListener("mousedown", (event) => event.preventDefault());
  }

  // The texts that were typed stay out of the address and of the history of the browser: they are sent in a form.
  createPanel() {
    panelCount += 1;
    this.panel = document.createElement("div");
    Object.assign(this.panel, { className: "find-panel", popover: "manual" });
    this.listbox = document.createElement("div");
    Object.assign(this.listbox, { id: `found-${panelCount}`, role: "listbox", ariaLabel: "Results" });
    this.status = document.createElement("p");
    this.status.setAttribute("role", "status");
    this.panel.append(this.listbox, this.status);
    this.form.append(this.panel);
  }

  onInput() {
    clearTimeout(this.timer);
    if (!this.input.value.trim()) {
      this.clear();
      return;
    }
    this.timer = setTimeout(() => this.request(), FIND_DELAY_MS);
  }

  // One request at a time: what was typed meanwhile is sent after the response.
  async request() {
    this.isOutdated = this.isBusy;
    if (this.isBusy) return;
    this.isBusy = true;
    const fragment = await this.fetchResults();
    this.isBusy = false;
    if (this.isOutdated) this.request();
    else if (fragment && this.input.value.trim() && !this.isStopped) this.render(fragment);
    else this.clear();
  }

  // Without a fragment, such as after the session ended, the user can still submit the form.
  async fetchResults() {
    const options = { method: "POST", body: new URLSearchParams(new FormData(this.form)), credentials: "same-origin", redirect: "error", signal: AbortSignal.timeout(FIND_TIMEOUT_MS) };
    const response = await fetch(this.form.dataset.find, options).catch(() => null);
    const html = response?.ok ? await response.text().catch(() => "") : "";
    return new DOMParser().parseFromString(html, "text/html").querySelector("[data-status]");
  }

  render(fragment) {
    this.listbox.replaceChildren(...document.adoptNode(fragment).children);
    this.options = [...this.listbox.querySelectorAll("[role=option]")];
    for (const element of this.listbox.querySelectorAll("[id]")) element.id = `${this.listbox.id}-${element.id}`;
    for (const group of this.listbox.querySelectorAll("[aria-labelledby]")) group.setAttribute("aria-labelledby", `${this.listbox.id}-${group.getAttribute("aria-labelledby")}`);
    this.status.textContent = fragment.dataset.status;
    this.choose(null);
    if (document.activeElement === this.input) this.show();
  }

  show() {
    this.listbox.hidden = !this.options.length;
    const field = this.input.getBoundingClientRect();
    const top = field.bottom + PANEL_GAP;
    Object.assign(this.panel.style, { top: `${top}px`, left: `${field.left}px`, maxHeight: `${Math.min(PANEL_HEIGHT_MAX, innerHeight - top - PANEL_GAP)}px` });
    this.panel.showPopover();
    // On a narrow screen the panel is moved to the left as far as its width needs.
    const overlap = this.panel.getBoundingClientRect().right + PANEL_GAP - document.documentElement.clientWidth;
    if (overlap > 0) this.panel.style.left = `${Math.max(field.left - overlap, PANEL_GAP)}px`;
    this.input.setAttribute("aria-expanded", String(this.options.length > 0));
  }

  hide() {
    clearTimeout(this.timer);
    if (this.panel.matches(":popover-open")) this.panel.hidePopover();
    this.input.setAttribute("aria-expanded", "false");
    this.choose(null);
  }

  clear() {
    this.hide();
    this.options = [];
    this.listbox.replaceChildren();
    this.status.textContent = "";
  }

  stop() {
    this.isStopped = true;
    this.hide();
  }

  choose(option) {
    for (const other of this.options ?? []) other.setAttribute("aria-selected", String(other === option));
    this.chosen = option;
    if (option) this.input.setAttribute("aria-activedescendant", option.id);
    else this.input.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  }

  onKey(event) {
    const isOpen = this.panel.matches(":popover-open");
    if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      this.hide();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && this.options?.length) {
      event.preventDefault();
      if (!isOpen) this.show();
      this.move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && this.chosen) {
      event.preventDefault();
      this.chosen.click();
    }
  }

  // After the last result comes the field itself, then the first one.
  move(step) {
    const places = this.options.length + 1;
    const place = (this.options.indexOf(this.chosen) + 1 + step + places) % places;
    this.choose(this.options[place - 1] ?? null);
  }
}

for (const form of document.querySelectorAll("form[data-find]")) if ("popover" in HTMLElement.prototype) new Finder(form);
