// What a page gains from a script: copying, keys, dialogs, toasts that leave. Everything works without it.
"use strict";

const TOAST_MS = 6000;

function wake(root) {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
  for (const button of root.querySelectorAll("[data-print]")) button.hidden = false;
  for (const toast of root.querySelectorAll("[data-toast]")) setTimeout(() => toast.remove(), TOAST_MS);
  for (const zones of root.querySelectorAll("select[data-guesses]")) guessPlace(zones);
  const wanted = root.querySelector("[data-focus]");
  if (wanted && !isSomewhere(document.activeElement)) wanted.focus();
}

// Whoever went to a field or a link before the script came stays there; one that the page itself chose makes way.
function isSomewhere(element) {
  if (!element || element === document.body) return false;
  return !element.autofocus || element.value !== element.defaultValue;
}

// The server guesses by language; the browser knows its time zone, and the choice names the country of each zone.
function guessPlace(zones) {
  const zone = [...zones.options].find((one) => one.value === Intl.DateTimeFormat().resolvedOptions().timeZone);
  if (!zone || zones.dataset.guesses !== "fresh") return;
  zones.value = zone.value;
  const countries = document.getElementById(zones.dataset.country);
  if (zone.dataset.country && countries) countries.value = zone.dataset.country;
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
    insertPlace(document.querySelector(insert.dataset.insert).value, document.querySelector(insert.dataset.into));
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
  const close = event.target.closest("dialog [data-close]");
  if (close) {
    event.preventDefault();
    close.closest("dialog").close();
  }
});

// Where the cursor stands, and counted at once as if it had been typed.
function insertPlace(place, area) {
  area.setRangeText(place, area.selectionStart, area.selectionEnd, "end");
  area.focus();
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

// The page behind the link has the same form; if it cannot be had, the link is followed as a link.
async function openDialog(opener) {
  const answer = await fetch(opener.href, { credentials: "same-origin" }).catch(() => null);
  const page = answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
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

const typing = (element) => element.closest("input, textarea, select, [contenteditable]") !== null;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (event.key === "/") {
    const find = document.querySelector(".side-find input, .filters-find input");
    if (find && find.offsetParent !== null) {
      event.preventDefault();
      find.focus();
    }
  }
  if (event.key === "j" || event.key === "k") moveRow(event.key === "j" ? 1 : -1);
});

// Rows are their first links: Enter opens what has focus, as everywhere.
function moveRow(step) {
  const links = [...document.querySelectorAll(".table tbody a.name")];
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  links[Math.min(Math.max(at + step, 0), links.length - 1)].focus();
}

document.body.addEventListener("toast", (event) => showToast(event.detail.value ?? event.detail));
document.addEventListener("htmx:load", (event) => wake(event.target));
// Live parts rest while nobody looks.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.detail.elt.matches("[data-live]")) event.preventDefault();
});
wake(document);
