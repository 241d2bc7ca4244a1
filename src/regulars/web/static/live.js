// Live forms while the server is away: figures are marked as old at once, the page says that the server does not answer,
// and what could not be sent is sent again until it is back.
//
// An element with data-outdates="<selector>" says which figures follow from the fields inside it. Its requests change
// nothing on the server, so they may be sent again; other posts are never repeated.
"use strict";

const RETRY_MS = 2000;
const NO_ANSWER = [502, 503, 504];
const AWAY = "The server does not answer. What you wrote stays here; the page goes on when the server is back.";
const NOT_SENT = "The server does not answer, so nothing was sent. What you wrote stays here; send it again when the server is back.";
// Requests without an answer, oldest first: their elements with what was requested.
const unanswered = new Map();
// Of each request: which figures it brings, and how many changes it knew of.
const sent = new WeakMap();
// The last value of each field that was counted as a change; `valueOf` is in swap.js.
const told = new WeakMap();
let changes = 0;
let isAway = false;

function mark(figures, isOld) {
  for (const figure of figures ? document.querySelectorAll(figures) : []) figure.classList.toggle("is-old", isOld);
}

// Of a field, and of a form around such an element.
const figuresOf = (part) => (part.closest("[data-outdates]") ?? part.querySelector("[data-outdates]"))?.dataset.outdates;

// A field that is left, or drawn anew, tells of its last value again: that is no further change.
function onChange({ target }) {
  if (!figuresOf(target) || told.get(target) === valueOf(target)) return;
  told.set(target, valueOf(target));
  changes += 1;
  mark(figuresOf(target), true);
}

function showAway(text) {
  const banner = document.getElementById("away") ?? document.createElement("div");
  Object.assign(banner, { id: "away", className: "banner is-warn is-away", role: "status" });
  if (!banner.isConnected) (document.querySelector(".page") ?? document.querySelector("main") ?? document.body).prepend(banner);
  // That something was not sent stays said while further requests fail.
  if (!isAway || text === NOT_SENT) banner.textContent = text;
  if (isAway) return;
  isAway = true;
  setTimeout(retry, RETRY_MS);
}

function showBack() {
  isAway = false;
  document.getElementById("away")?.remove();
}

// The oldest request again; where none waits, a small file that comes if the server is there.
async function retry() {
  if (!isAway) return;
  for (const part of unanswered.keys()) if (!part.isConnected) unanswered.delete(part);
  const [oldest] = unanswered;
  if (oldest) {
    await send(...oldest);
  } else {
    const answer = await fetch(document.querySelector("link[rel=icon]").href, { cache: "no-store" }).catch(() => null);
    if (answer?.ok) showBack();
  }
  if (isAway) setTimeout(retry, RETRY_MS);
}

async function send(part, { verb, path }) {
  await htmx.ajax(verb, path, { source: part }).catch(() => null);
}

// A part that refreshes itself is old as soon as it cannot; the next answer draws it anew, with what comes beside it.
function markLive(part) {
  part.classList.add("is-old");
  mark(part.getAttribute("hx-select-oob"), true);
}

function onLost({ detail: { elt, requestConfig } }) {
  mark(figuresOf(elt), true);
  if (elt.matches("[data-live]")) markLive(elt);
  const mayRepeat = requestConfig.verb === "get" || figuresOf(elt);
  // A part that refreshes itself does so without help.
  if (mayRepeat && !elt.matches("[data-live]")) unanswered.set(elt, requestConfig);
  showAway(AWAY);
}

async function onAnswer(event) {
  const { elt, xhr } = event.detail;
  if (NO_ANSWER.includes(xhr.status)) {
    onLost(event);
    return;
  }
  unanswered.delete(elt);
  if (!isAway) return;
  showBack();
  // What else waits is sent now, in its order; an answer may have drawn its part anew, with everything in it.
  const waiting = [...unanswered];
  unanswered.clear();
  for (const [part, request] of waiting) if (part.isConnected) await send(part, request);
}

document.addEventListener("input", onChange);
document.addEventListener("change", onChange);
document.addEventListener("htmx:beforeRequest", ({ detail: { elt, xhr } }) => {
  sent.set(xhr, { figures: figuresOf(elt), changes });
});
document.addEventListener("htmx:beforeOnLoad", onAnswer);
document.addEventListener("htmx:sendError", onLost);
document.addEventListener("htmx:timeout", onLost);
// An answer that did not know the last change brings figures that are old already.
document.addEventListener("htmx:afterSettle", ({ detail: { xhr } }) => {
  const request = sent.get(xhr);
  if (request) mark(request.figures, request.changes !== changes);
});
document.addEventListener("submit", (event) => {
  if (!isAway || event.defaultPrevented || event.target.method !== "post") return;
  event.preventDefault();
  // htmx would send its next request of this form where the button in focus leads.
  event.submitter?.blur();
  showAway(NOT_SENT);
});
window.addEventListener("offline", () => {
  for (const part of document.querySelectorAll("[data-live]")) markLive(part);
  showAway(AWAY);
});
window.addEventListener("online", retry);
