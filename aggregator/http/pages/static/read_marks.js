// What the reader has looked at: all events detected until a time, and single later ones. Known users have it on the
// server, in all their browsers (the front page carries it); others in this browser. Times are the server's.
import { basePath } from "./base_path.js";

const KEY = "aggregator.read";
const MAX_SEEN = 200;
const UNKNOWN_TIME = Number.MAX_SAFE_INTEGER; // of events whose detection this page does not know
let mark = null; // { at: ms, seen: { id: detected ms } }; null before the first visit of the front page
let held = null; // what the server is sent unless the reader undoes it, for it takes nothing back

const isKnownUser = () => Boolean(document.body.dataset.user);

function load() {
  if (mark && isKnownUser()) return mark;
  mark = JSON.parse(localStorage.getItem(KEY) || "null") || mark;
  return mark;
}

function save(changed) {
  const recent = Object.entries(changed.seen).filter(([, at]) => at > changed.at);
  mark = { at: changed.at, seen: Object.fromEntries(recent.sort((a, b) => b[1] - a[1]).slice(0, MAX_SEEN)) };
  localStorage.setItem(KEY, JSON.stringify(mark));
}

async function send(body) {
  if (!isKnownUser()) return;
  await fetch(`${basePath}/v1/read-mark`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    keepalive: true, // also when the reader leaves the page
  }).catch(() => {}); // it stays marked in this browser, and is sent again with the next one
}

// Takes over the mark that the server rendered into a front page. On a first visit, all its events count as seen.
export function takeFrom(doc) {
  if (held) return;
  const stored = JSON.parse(doc.getElementById("new-section")?.dataset.readMark || "null");
  if (stored) save({ at: stored.at, seen: Object.fromEntries(stored.seen.map((id) => [id, UNKNOWN_TIME])) });
  else if (isKnownUser() || !load()) markAllSeen(doc);
}

export function isUnread(id, detectedMs) {
  const known = load();
  return Boolean(known) && detectedMs > known.at && !(id in known.seen);
}

export async function markSeen(id) {
  const known = load();
  if (!known) return send({ seen: [id] }); // a browser without a front page yet: the server may know the user's mark
  const row = document.querySelector(`[data-detected][data-event="${CSS.escape(id)}"]`);
  const detectedMs = row ? Number(row.dataset.detected) : UNKNOWN_TIME;
  if (!isUnread(id, detectedMs)) return;
  save({ at: known.at, seen: { ...known.seen, [id]: detectedMs } });
  await send({ seen: [id] });
}

// Clears the list of new events. Returns the functions that undo and that keep it; leaving the page keeps it, too.
export function clearNew() {
  const before = load();
  held = saveAllSeen(document);
  return {
    undo: () => {
      held = null;
      save(before);
    },
    keep: keepCleared,
  };
}

async function keepCleared() {
  if (held) await send(held);
  held = null;
}
addEventListener("pagehide", keepCleared);

async function markAllSeen(doc) {
  await send(saveAllSeen(doc));
}

// All events of an unfiltered front page and all older ones; of a filtered one only those that it lists. Returns what
// the server is to be sent.
function saveAllSeen(doc) {
  const rows = [...doc.querySelectorAll("[data-detected]")];
  const latest = Math.max(0, ...rows.map((row) => Number(row.dataset.detected)));
  const known = load() || { at: 0, seen: {} };
  if (isFiltered(doc)) {
    const ids = rows.filter((row) => Number(row.dataset.detected) > known.at).slice(0, MAX_SEEN);
    save({ at: known.at, seen: { ...known.seen, ...Object.fromEntries(ids.map((row) => [row.dataset.event, Number(row.dataset.detected)])) } });
    return { seen: ids.map((row) => row.dataset.event) };
  }
  save({ at: Math.max(known.at, latest), seen: {} });
  return { looked_at: new Date(latest).toISOString() };
}

export function isFiltered(doc = document) {
  return doc.querySelector(".chips .chip.on") !== null;
}
