// Keeps a page fresh without moving what is being read: whenever the stream of events tells of a change,
// and now and then, fetch the same page, replace only what changed, and put the reader's place back.
import { tellTimes } from "./times.js";
import { arrived, told } from "./news.js";

const POLL_MS = { events: 4000, health: 4000, report: 20000 };
const RETRY_MS = 5000;
const PAUSE_MS = 250;
const body = document.body;
let tag = null;
let failures = 0;
let timer = 0;
let busy = false;
let again = false;

// The markup as the server sent it, to compare with: the page itself holds rewritten times.
const sent = new WeakMap();

function place() {
  for (const node of document.querySelectorAll("[data-live] > [data-key], [data-live-whole] section")) {
    const { top, bottom } = node.getBoundingClientRect();
    if (bottom > 60) return { find: handle(node), top };
  }
  return null;
}

function handle(node) {
  if (node.dataset.key) return `[data-key="${CSS.escape(node.dataset.key)}"]`;
  return `[aria-labelledby="${node.getAttribute("aria-labelledby")}"]`;
}

function restore(kept) {
  if (!kept || window.scrollY === 0) return;
  const node = document.querySelector(kept.find);
  if (node) window.scrollBy(0, node.getBoundingClientRect().top - kept.top);
}

function mergeList(list, fresh) {
  const old = new Map([...list.children].map((node) => [node.dataset.key, node]));
  let cursor = list.firstElementChild;
  for (const next of [...fresh.children]) {
    const html = next.outerHTML;
    let node = old.get(next.dataset.key);
    const known = Boolean(node);
    old.delete(next.dataset.key);
    if (node && sent.get(node) !== html) {
      const replacement = document.importNode(next, true);
      if (cursor === node) cursor = replacement;
      node.replaceWith(replacement);
      node = replacement;
    } else if (!node) {
      node = document.importNode(next, true);
    }
    sent.set(node, html);
    if (node === cursor) cursor = cursor.nextElementSibling;
    else list.insertBefore(node, cursor);
    if (!known) arrived(node);
  }
  for (const gone of old.values()) gone.remove();
}

function mergeWhole(node, fresh) {
  const html = fresh.innerHTML;
  if (sent.get(node) === html) return;
  const open = new Set([...node.querySelectorAll("details[open][data-key]")].map((d) => d.dataset.key));
  node.replaceChildren(...document.importNode(fresh, true).childNodes);
  for (const details of node.querySelectorAll("details[data-key]")) details.open = open.has(details.dataset.key);
  sent.set(node, html);
}

function show(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  const kept = place();
  const focus = focused();
  for (const list of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(list.id);
    if (next) mergeList(list, next);
  }
  for (const whole of document.querySelectorAll("[data-live-whole]")) {
    const next = fresh.getElementById(whole.id);
    if (next) mergeWhole(whole, next);
  }
  for (const count of document.querySelectorAll("[data-live-text]")) {
    const next = fresh.getElementById(count.id);
    if (next) count.textContent = next.textContent;
  }
  for (const part of document.querySelectorAll("[data-live-count]")) {
    const next = fresh.getElementById(part.id);
    if (next) part.hidden = next.hidden;
  }
  tellTimes();
  told();
  restore(kept);
  refocus(focus);
}

function focused() {
  const node = document.activeElement;
  const holder = node?.closest?.("[data-key], [data-item], [data-live-whole]");
  if (!holder) return null;
  const { key, item } = holder.dataset;
  const inside = key ? `[data-key="${CSS.escape(key)}"]` : item ? `[data-item="${CSS.escape(item)}"]` : "[data-live-whole]";
  const { action, scope } = node.dataset;
  return { node, inside, finer: action ? `[data-action="${action}"]${scope ? `[data-scope="${scope}"]` : ""}` : null };
}

function refocus(before) {
  if (!before || before.node.isConnected) return;
  const holder = document.querySelector(before.inside);
  const target = (before.finer && holder?.querySelector(before.finer)) || holder?.querySelector("a, button");
  target?.focus({ preventScroll: true });
}

function say(text) {
  const state = document.getElementById("link-state");
  if (state.textContent !== text) state.textContent = text;
}

export async function refresh() {
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  clearTimeout(timer);
  try {
    const headers = { Accept: "text/html", ...(tag ? { "If-None-Match": tag } : {}) };
    const response = await fetch(location.href, { headers, cache: "no-store" });
    if (response.status === 200) {
      tag = response.headers.get("ETag");
      show(await response.text());
    } else if (response.status !== 304) {
      failures = 1; // the service itself says so: no need to wait for a second time
      throw new Error(response.status === 503 ? "The store is away" : "The service answers with an error");
    }
    failures = 0;
    say("");
  } catch (error) {
    failures += 1;
    const why = error instanceof TypeError ? "The service cannot be reached" : error.message;
    if (failures > 1) say(`${why}; this page shows the last known state and keeps trying.`);
  }
  tellTimes();
  busy = false;
  schedule(again ? PAUSE_MS : failures ? RETRY_MS : POLL_MS[body.dataset.page]);
  again = false;
}

function schedule(ms) {
  clearTimeout(timer);
  timer = setTimeout(() => (document.hidden ? schedule(ms) : refresh()), ms);
}

function soon() {
  if (document.hidden) again = true;
  schedule(PAUSE_MS);
}

function listen() {
  const { stream, after } = body.dataset;
  if (!stream) return;
  const live = document.getElementById("live");
  const word = document.getElementById("live-word");
  const url = stream + (stream.includes("?") ? "&" : "?") + (after ? `after=${encodeURIComponent(after)}` : "");
  const source = new EventSource(url);
  const state = (on) => {
    live.hidden = false;
    live.classList.toggle("on", on);
    word.textContent = on ? "Live" : "Reconnecting";
  };
  source.onopen = () => {
    state(true);
    soon();
  };
  source.onerror = () => {
    state(false);
    // A browser gives up on an answer that is not a stream (the service full, or a proxy's error page).
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, RETRY_MS);
  };
  for (const kind of ["fired", "updated", "doubled", "merged", "closed", "action", "reset"]) {
    source.addEventListener(kind, (message) => {
      body.dataset.after = message.lastEventId;
      if (kind !== "reset") document.dispatchEvent(new CustomEvent("news", { detail: { kind, event: JSON.parse(message.data) } }));
      soon();
    });
  }
}

export function start() {
  if (!(body.dataset.page in POLL_MS)) return;
  for (const list of document.querySelectorAll("[data-live]")) for (const node of list.children) sent.set(node, node.outerHTML);
  for (const whole of document.querySelectorAll("[data-live-whole]")) sent.set(whole, whole.innerHTML);
  schedule(POLL_MS[body.dataset.page]);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh();
  });
  listen();
}
