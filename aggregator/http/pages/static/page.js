// Keeps the page fresh without moving what is being read: fetch the same page, replace only
// entries that changed, and put the reader's entry back where it was on the screen.
"use strict";

const REFRESH_MS = 3000;
const RETRY_MS = 10000;
const live = () => document.querySelectorAll("[data-live]");
let tag = null;
let failures = 0;

const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

function ago(date) {
  const seconds = (date - Date.now()) / 1000;
  if (!(Math.abs(seconds) < 30 * 86400)) return absolute.format(date);
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.round(seconds / size), unit);
  }
  return "just now";
}

function tellTimes() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    const text = ago(date);
    if (time.textContent !== text) time.textContent = text;
    if (!time.title) time.title = absolute.format(date);
  }
}

// The markup as the server sent it, to compare with: the page itself holds rewritten times.
const sources = new WeakMap();
const remember = (node, from) => sources.set(node, from);

function anchor() {
  for (const node of document.querySelectorAll("[data-live] > *")) {
    const { top, bottom } = node.getBoundingClientRect();
    if (bottom > 0) return { key: node.dataset.key, top };
  }
  return null;
}

function restore(place) {
  if (!place || window.scrollY === 0) return;
  const node = document.querySelector(`[data-key="${CSS.escape(place.key)}"]`);
  if (node) window.scrollBy(0, node.getBoundingClientRect().top - place.top);
}

function merge(list, fresh) {
  const old = new Map([...list.children].map((node) => [node.dataset.key, node]));
  let cursor = list.firstElementChild;
  for (const next of [...fresh.children]) {
    const html = next.outerHTML;
    let node = old.get(next.dataset.key);
    old.delete(next.dataset.key);
    if (node && sources.get(node) !== html) {
      const replacement = document.importNode(next, true);
      if (cursor === node) cursor = replacement;
      node.replaceWith(replacement);
      node = replacement;
    } else if (!node) {
      node = document.importNode(next, true);
    }
    remember(node, html);
    if (node === cursor) cursor = cursor.nextElementSibling;
    else list.insertBefore(node, cursor);
  }
  for (const gone of old.values()) gone.remove();
}

function show(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  const place = anchor();
  const focused = document.activeElement && document.activeElement.closest("[data-key]");
  for (const list of live()) {
    const next = fresh.getElementById(list.id);
    if (next) merge(list, next);
  }
  tellTimes();
  restore(place);
  if (focused && !focused.isConnected) {
    const again = document.querySelector(`[data-key="${CSS.escape(focused.dataset.key)}"] a`);
    if (again) again.focus({ preventScroll: true });
  }
}

function say(text) {
  const state = document.getElementById("link-state");
  if (state.textContent !== text) state.textContent = text;
}

async function refresh() {
  try {
    const headers = tag ? { "If-None-Match": tag } : {};
    const response = await fetch(location.pathname, { headers, cache: "no-store" });
    if (response.status === 200) {
      tag = response.headers.get("ETag");
      show(await response.text());
    } else if (response.status !== 304) {
      throw new Error(String(response.status));
    }
    failures = 0;
    say("");
  } catch {
    failures += 1;
    if (failures > 1) say("The service cannot be reached; this page shows the last known state and keeps trying.");
  }
  tellTimes();
  setTimeout(refresh, failures ? RETRY_MS : REFRESH_MS);
}

for (const list of live()) for (const node of list.children) remember(node, node.outerHTML);
tellTimes();
setTimeout(refresh, REFRESH_MS);
document.addEventListener("visibilitychange", () => { if (!document.hidden) tellTimes(); });
