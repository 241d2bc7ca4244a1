// Copy buttons, keyboard shortcuts, dialogs and toasts. Every page also works without this script.
"use strict";

const TOAST_MS = 6000;

function enhance(root) {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
  for (const button of root.querySelectorAll("[data-print]")) button.hidden = false;
  for (const toast of root.querySelectorAll("[data-toast]")) setTimeout(() => toast.remove(), TOAST_MS);
  for (const zoneSelect of root.querySelectorAll("select[data-guesses]")) preselectTimeZone(zoneSelect);
  for (const field of root.querySelectorAll("[data-selected]")) if (field.value === field.defaultValue) field.select();
  const focusTarget = root.querySelector("[data-focus]");
  if (focusTarget && !hasUserFocus(document.activeElement)) focusTarget.focus();
}

// True if the user moved the focus before this script ran; an untouched autofocus field does not count.
function hasUserFocus(element) {
  if (!element || element === document.body) return false;
  return !element.autofocus || element.value !== element.defaultValue;
}

// Selects the browser's time zone and the country of that zone; the server could only guess the country from the
// language. Another country leaves the time zone to the server, unless the browser's own is one of that country.
function preselectTimeZone(zoneSelect) {
  const zone = [...zoneSelect.options].find((option) => option.value === Intl.DateTimeFormat().resolvedOptions().timeZone);
  const countrySelect = document.getElementById(zoneSelect.dataset.country);
  if (!countrySelect) return;
  countrySelect.addEventListener("change", () => {
    const isOwn = !countrySelect.value || zone?.dataset.country === countrySelect.value;
    zoneSelect.value = zone && isOwn ? zone.value : "";
  });
  if (!zone || zoneSelect.dataset.guesses !== "fresh") return;
  zoneSelect.value = zone.value;
  if (zone.dataset.country) countrySelect.value = zone.dataset.country;
}

function showToast(text) {
  const toast = document.createElement("div");
  toast.className = "toast";
  toast.textContent = text;
  document.getElementById("toasts")?.append(toast);
  setTimeout(() => toast.remove(), TOAST_MS);
}

document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    await navigator.clipboard.writeText(copy.dataset.copy);
    showToast("Copied.");
    return;
  }
  const insert = event.target.closest("[data-insert]");
  if (insert) {
    event.preventDefault();
    insertVariable(document.querySelector(insert.dataset.insert).value, document.querySelector(insert.dataset.into));
    return;
  }
  if (event.target.closest("[data-print]")) {
    window.print();
    return;
  }
  const opener = event.target.closest("a[data-dialog]");
  if (opener && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    openDialog(opener);
    return;
  }
  const summary = event.target.closest("details[data-opens-field] > summary");
  if (summary && !summary.parentElement.open) setTimeout(() => summary.nextElementSibling.querySelector("select, input:not([type=hidden])")?.focus());
  const close = event.target.closest("dialog [data-close]");
  if (close) {
    event.preventDefault();
    close.closest("dialog").close();
  }
});

// Inserts a variable at the caret. The input event has the server count the text, as after typing.
function insertVariable(variable, textarea) {
  textarea.setRangeText(variable, textarea.selectionStart, textarea.selectionEnd, "end");
  textarea.focus();
  textarea.dispatchEvent(new Event("input", { bubbles: true }));
}

// Loads the linked page and shows its form in a dialog. If the request fails, the browser follows the link.
async function openDialog(opener) {
  const response = await fetch(opener.href, { credentials: "same-origin" }).catch(() => null);
  const page = response?.ok ? new DOMParser().parseFromString(await response.text(), "text/html") : null;
  const form = page?.querySelector("#dialog > form");
  if (!form) {
    location.assign(opener.href);
    return;
  }
  const dialog = document.createElement("dialog");
  dialog.className = "dialog";
  dialog.append(document.adoptNode(form));
  dialog.addEventListener("close", () => { dialog.remove(); opener.focus(); });
  document.body.append(dialog);
  dialog.setAttribute("aria-label", form.querySelector("h2")?.textContent ?? "");
  dialog.showModal();
}

const isEditable = (element) => element.closest("input, textarea, select, [contenteditable]") !== null;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isEditable(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "/") focusSearch(event);
  const shortcuts = document.querySelector("[data-dialog][aria-keyshortcuts='?']");
  if (event.key === "?" && shortcuts) openDialog(shortcuts);
  if (event.key === "j" || event.key === "k") moveRow(event.key === "j" ? 1 : -1);
});

// On a narrow screen the field is in the menu, which is opened first.
function focusSearch(event) {
  const searchField = document.querySelector(".side-find input[type=search], .filters-find input[type=search]");
  if (!searchField) return;
  event.preventDefault();
  if (!searchField.checkVisibility()) searchField.closest("[popover]")?.showPopover();
  searchField.focus();
}

// Moves the focus to the link in the next or previous table row, so that Enter opens that row.
function moveRow(step) {
  const links = [...document.querySelectorAll(".table tbody a.name")];
  if (!links.length) return;
  const index = links.indexOf(document.activeElement);
  links[Math.min(Math.max(index + step, 0), links.length - 1)].focus();
}

document.body.addEventListener("toast", (event) => showToast(event.detail.value ?? event.detail));
document.addEventListener("htmx:load", (event) => enhance(event.target));
// Elements that poll the server pause while the browser tab is hidden.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.detail.elt.matches("[data-live]")) event.preventDefault();
});
enhance(document);
