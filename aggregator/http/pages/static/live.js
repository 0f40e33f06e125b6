// Live updates: on a change in the event stream, and at intervals, fetch the page again, replace only what changed,
// and keep scroll position and focus.
import { updateTimes } from "./times.js";
import { arrange, showNewEvents } from "./new_events.js";
import { openStream } from "./stream.js";

const POLL_MS = { events: 4000, health: 4000, report: 20000, desks: 5000, provenance: 60000 };
const RETRY_MS = 5000;
const DEBOUNCE_MS = 250;
const BAR_HEIGHT_PX = 60;
const body = document.body;
let etag = null;
let failures = 0;
let timer = 0;
let isRefreshing = false;
let refreshAgain = false;

// The markup as the server sent it, for comparison: the document contains rewritten times.
const sentMarkup = new WeakMap();

// The first element in view and its offset.
function scrollAnchor() {
  for (const node of document.querySelectorAll("[data-live] > [data-key], [data-live-whole] section")) {
    const { top, bottom } = node.getBoundingClientRect();
    if (bottom > BAR_HEIGHT_PX) return { selector: selectorOf(node), top };
  }
  return null;
}

function selectorOf(node) {
  if (node.dataset.key) return `[data-key="${CSS.escape(node.dataset.key)}"]`;
  return `[aria-labelledby="${node.getAttribute("aria-labelledby")}"]`;
}

function restoreScroll(anchor) {
  if (!anchor || window.scrollY === 0) return;
  const node = document.querySelector(anchor.selector);
  if (node) window.scrollBy(0, node.getBoundingClientRect().top - anchor.top);
}

function mergeList(list, freshList) {
  if ("paused" in list.dataset) return;
  const oldNodes = new Map([...list.children].map((node) => [node.dataset.key, node]));
  let cursor = list.firstElementChild;
  for (const fresh of [...freshList.children]) {
    const html = fresh.outerHTML;
    let node = oldNodes.get(fresh.dataset.key);
    const isNew = !node;
    oldNodes.delete(fresh.dataset.key);
    if (node && sentMarkup.get(node) !== html) {
      const replacement = document.importNode(fresh, true);
      if (cursor === node) cursor = replacement;
      node.replaceWith(replacement);
      node = replacement;
    } else if (!node) {
      node = document.importNode(fresh, true);
    }
    sentMarkup.set(node, html);
    if (node === cursor) cursor = cursor.nextElementSibling;
    else list.insertBefore(node, cursor);
    if (isNew) node.classList.add("arrived");
  }
  for (const removed of oldNodes.values()) removed.remove();
}

function mergeWhole(node, fresh) {
  const html = fresh.innerHTML;
  if (sentMarkup.get(node) === html) return;
  const open = new Set([...node.querySelectorAll("details[open][data-key]")].map((d) => d.dataset.key));
  node.replaceChildren(...document.importNode(fresh, true).childNodes);
  for (const details of node.querySelectorAll("details[data-key]")) details.open = open.has(details.dataset.key);
  sentMarkup.set(node, html);
}

function mergePage(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  arrange(fresh);
  const anchor = scrollAnchor();
  const focus = focusState();
  const forEachPair = (selector, merge) => {
    for (const node of document.querySelectorAll(selector)) {
      const freshNode = fresh.getElementById(node.id);
      if (freshNode) merge(node, freshNode);
    }
  };
  forEachPair("[data-live]", mergeList);
  forEachPair("[data-live-whole]", mergeWhole);
  forEachPair("[data-live-text]", (node, freshNode) => (node.textContent = freshNode.textContent));
  forEachPair("[data-live-count]", (node, freshNode) => (node.hidden = freshNode.hidden));
  updateTimes();
  showNewEvents(fresh.body.dataset.after); // before the scroll position is restored, since it shows a section on top
  restoreScroll(anchor);
  restoreFocus(focus);
}

// The focused element, the selector of its row or section, and that of the button in it.
function focusState() {
  const node = document.activeElement;
  const holder = node?.closest?.("[data-key], [data-item], [data-live-whole]");
  if (!holder) return null;
  const { key, item } = holder.dataset;
  const inside = key ? `[data-key="${CSS.escape(key)}"]` : item ? `[data-item="${CSS.escape(item)}"]` : `#${CSS.escape(holder.id)}`;
  const { action, menu, select } = node.dataset;
  const button = [["action", action], ["menu", menu], ["select", select]].filter(([, value]) => value);
  const row = node.closest("[data-key]");
  const beside = [row?.nextElementSibling, row?.previousElementSibling].map((other) => other?.dataset.key).filter(Boolean);
  return { node, inside, beside, button: button.map(([name, value]) => `[data-${name}="${CSS.escape(value)}"]`).join("") };
}

function restoreFocus(state) {
  if (!state || state.node.isConnected) return;
  const isShown = (node) => node?.checkVisibility();
  // A row that moved into a collapsed list leaves the focus to the one beside it.
  const rows = [state.inside, ...state.beside.map((key) => `[data-key="${CSS.escape(key)}"]`)];
  const holder = rows.map((selector) => document.querySelector(selector)).find(isShown);
  const target = (state.button && holder?.querySelector(state.button)) || holder?.querySelector("a, button");
  target?.focus({ preventScroll: true });
}

function showConnectionState(text) {
  const state = document.getElementById("connection-state");
  if (state.textContent !== text) state.textContent = text;
}

export async function refresh() {
  if (isRefreshing) {
    refreshAgain = true;
    return;
  }
  isRefreshing = true;
  clearTimeout(timer);
  try {
    const headers = { Accept: "text/html", ...(etag ? { "If-None-Match": etag } : {}) };
    const response = await fetch(location.href, { headers, cache: "no-store" });
    if (response.status === 200) {
      etag = response.headers.get("ETag");
      mergePage(await response.text());
    } else if (response.status !== 304) {
      failures = 1; // the service itself reports the error, so it is shown without waiting for a second one
      throw new Error(response.status === 503 ? "The store is unavailable" : "The service returns an error");
    }
    failures = 0;
    showConnectionState("");
    reportRefresh("");
  } catch (error) {
    failures += 1;
    const reason = error instanceof TypeError ? "The service cannot be reached" : error.message;
    if (failures > 1) showConnectionState(`${reason}; this page shows the last known state. Retrying …`);
    reportRefresh(reason);
  }
  updateTimes();
  isRefreshing = false;
  schedule(refreshAgain ? DEBOUNCE_MS : failures ? RETRY_MS : POLL_MS[body.dataset.page]);
  refreshAgain = false;
}

function reportRefresh(problem) {
  document.dispatchEvent(new CustomEvent("refreshed", { detail: { problem } }));
}

// Fetches the page again even if the server's state is the same: what the reader has seen is not in it.
export function refreshWhole() {
  etag = null;
  return refresh();
}

function schedule(ms) {
  clearTimeout(timer);
  timer = setTimeout(() => (document.hidden ? schedule(ms) : refresh()), ms);
}

function refreshSoon() {
  if (document.hidden) refreshAgain = true;
  schedule(DEBOUNCE_MS);
}

function followStream() {
  const { stream } = body.dataset;
  if (!stream) return;
  const live = document.getElementById("live");
  const label = document.getElementById("live-label");
  const onState = (state) => {
    live.hidden = false;
    live.classList.toggle("on", state === "on");
    label.textContent = { on: "Live", off: "Reconnecting", waiting: "At intervals" }[state];
  };
  openStream(stream, { onState, onChange: refreshSoon });
}

export function start() {
  if (!(body.dataset.page in POLL_MS)) return;
  for (const list of document.querySelectorAll("[data-live]")) {
    for (const node of list.children) sentMarkup.set(node, node.outerHTML);
  }
  arrange(document);
  for (const whole of document.querySelectorAll("[data-live-whole]")) sentMarkup.set(whole, whole.innerHTML);
  schedule(POLL_MS[body.dataset.page]);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh();
  });
  followStream();
  startPause();
}

// Stops the list of the latest articles, so that it can be read.
function startPause() {
  const button = document.getElementById("pause");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const isPaused = document.getElementById("verdicts").toggleAttribute("data-paused");
    button.setAttribute("aria-pressed", String(isPaused));
    button.textContent = isPaused ? "Paused" : "Pause";
    if (!isPaused) refreshWhole();
  });
}
