// Marks results as outdated when the user changes a field, and retries requests while the server is unreachable.
//
// data-outdates="<selector>" names the results that the server computes from the fields inside the element. Requests of such
// fields change nothing on the server, so the script may repeat them. It never repeats another POST.
"use strict";

const RETRY_MS = 2000;
const UNAVAILABLE_STATUSES = [502, 503, 504];
const UNREACHABLE = "The server does not respond. Your input stays on this page, and the page continues when the server is back.";
const NOT_SENT = "The server does not respond, so nothing was sent. Your input stays on this page; send it again when the server is back.";
// The element and configuration of each request that failed, oldest first.
const failedRequests = new Map();
// By request: the results that it refreshes, and `changeCount` when it was sent.
const requestStates = new WeakMap();
// The last value of each field that raised `changeCount`; `fieldValue` is in swap.js.
const lastValues = new WeakMap();
let changeCount = 0;
let isUnreachable = false;

function markOutdated(selector, isOutdated) {
  for (const element of selector ? document.querySelectorAll(selector) : []) element.classList.toggle("is-old", isOutdated);
}

// The results of a field inside a data-outdates element, or of a form around one.
const outdatedSelector = (element) => (element.closest("[data-outdates]") ?? element.querySelector("[data-outdates]"))?.dataset.outdates;

// Leaving or redrawing a field repeats the event with the same value, which is not a change.
function onChange({ target }) {
  if (!outdatedSelector(target) || lastValues.get(target) === fieldValue(target)) return;
  lastValues.set(target, fieldValue(target));
  changeCount += 1;
  markOutdated(outdatedSelector(target), true);
}

function showUnreachable(text) {
  const banner = document.getElementById("away") ?? document.createElement("div");
  Object.assign(banner, { id: "away", className: "banner is-warn is-away", role: "status" });
  if (!banner.isConnected) (document.querySelector(".page") ?? document.querySelector("main") ?? document.body).prepend(banner);
  // NOT_SENT stays visible while further requests fail.
  if (!isUnreachable || text === NOT_SENT) banner.textContent = text;
  if (isUnreachable) return;
  isUnreachable = true;
  setTimeout(retry, RETRY_MS);
}

function hideUnreachable() {
  isUnreachable = false;
  document.getElementById("away")?.remove();
}

// Repeats the oldest failed request. If there is none, requests the icon to find out whether the server is back.
async function retry() {
  if (!isUnreachable) return;
  for (const element of failedRequests.keys()) if (!element.isConnected) failedRequests.delete(element);
  const [oldest] = failedRequests;
  if (oldest) {
    await send(...oldest);
  } else {
    const response = await fetch(document.querySelector("link[rel=icon]").href, { cache: "no-store" }).catch(() => null);
    if (response?.ok) hideUnreachable();
  }
  if (isUnreachable) setTimeout(retry, RETRY_MS);
}

async function send(element, { verb, path }) {
  await htmx.ajax(verb, path, { source: element }).catch(() => null);
}

// Marks a polling element and the elements that its response also replaces; the next response removes the marks.
function markPolling(element) {
  element.classList.add("is-old");
  markOutdated(element.getAttribute("hx-select-oob"), true);
}

function onFailure({ detail: { elt, requestConfig } }) {
  markOutdated(outdatedSelector(elt), true);
  if (elt.matches("[data-live]")) markPolling(elt);
  const isRepeatable = requestConfig.verb === "get" || outdatedSelector(elt);
  // A polling element sends its next request by itself.
  if (isRepeatable && !elt.matches("[data-live]")) failedRequests.set(elt, requestConfig);
  showUnreachable(UNREACHABLE);
}

async function onResponse(event) {
  const { elt, xhr } = event.detail;
  if (UNAVAILABLE_STATUSES.includes(xhr.status)) {
    onFailure(event);
    return;
  }
  failedRequests.delete(elt);
  if (!isUnreachable) return;
  hideUnreachable();
  // Repeats the other failed requests, oldest first, unless a response replaced their element.
  const retries = [...failedRequests];
  failedRequests.clear();
  for (const [element, request] of retries) if (element.isConnected) await send(element, request);
}

document.addEventListener("input", onChange);
document.addEventListener("change", onChange);
document.addEventListener("htmx:beforeRequest", ({ detail: { elt, xhr } }) => {
  requestStates.set(xhr, { selector: outdatedSelector(elt), changeCount });
});
document.addEventListener("htmx:beforeOnLoad", onResponse);
document.addEventListener("htmx:sendError", onFailure);
document.addEventListener("htmx:timeout", onFailure);
// The results of a request that was sent before the last change are outdated.
document.addEventListener("htmx:afterSettle", ({ detail: { xhr } }) => {
  const request = requestStates.get(xhr);
  if (request) markOutdated(request.selector, request.changeCount !== changeCount);
});
document.addEventListener("submit", (event) => {
  if (!isUnreachable || event.defaultPrevented || event.target.method !== "post") return;
  event.preventDefault();
  // While a button has focus, htmx sends the next request of this form to the address of the button.
  event.submitter?.blur();
  showUnreachable(NOT_SENT);
});
window.addEventListener("offline", () => {
  for (const element of document.querySelectorAll("[data-live]")) markPolling(element);
  showUnreachable(UNREACHABLE);
});
window.addEventListener("online", retry);
