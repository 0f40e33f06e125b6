// New events: a section on top of the front page, and on every page a count in tab title and icon, a button that leads
// to them, and an announcement for screen readers.
import { basePath } from "./base_path.js";
import { clearNew, isFiltered, isUnread, markSeen, takeFrom } from "./read_marks.js";
import { addShortcut } from "./shortcuts.js";
import { openStream } from "./stream.js";
import { showToast } from "./toast.js";

const UNSEEN_KEY = "aggregator.unseen"; // [{ id, title, at, position }], shared by all pages of this browser
const MAX_UNSEEN = 50;
const MAX_ICON_COUNT = 9;
const BAR_HEIGHT_PX = 60;
const title = document.title;
const isKiosk = "kiosk" in document.body.dataset;
const firedHere = new Map(); // id -> { headline, at } of events that fired while this page is open

export function unseen() {
  const stored = JSON.parse(localStorage.getItem(UNSEEN_KEY) || "[]");
  return stored.filter(({ id, at }) => isUnread(id, at));
}

function setUnseen(events) {
  const text = JSON.stringify(events.slice(0, MAX_UNSEEN));
  if (localStorage.getItem(UNSEEN_KEY) !== text) localStorage.setItem(UNSEEN_KEY, text);
  showCount();
}

// Moves the rows of new events of a front page, in the order of the page, into the section on top.
export function arrange(doc) {
  const list = doc.getElementById("events-new");
  if (!list || isKiosk) return;
  takeFrom(doc);
  const rows = [...doc.querySelectorAll("#events > [data-detected], #events-closed > [data-detected]")];
  list.append(...rows.filter((row) => isUnread(row.dataset.event, Number(row.dataset.detected))));
}

// Called after every refresh of the front page, with its position in the event stream. Events that fired later stay
// unseen although it does not list them: a response may arrive after the stream has announced a further event.
export function showNewEvents(pagePosition) {
  const section = document.getElementById("new-section");
  if (!section || isKiosk) return;
  const rows = [...section.querySelectorAll("[data-detected]")];
  section.hidden = rows.length === 0;
  document.getElementById("new-count").textContent = rows.length || "";
  const shown = rows.map((row) => ({ id: row.dataset.event, title: row.querySelector("h2").textContent, at: Number(row.dataset.detected) }));
  const others = unseen().filter(({ id }) => !shown.some((event) => event.id === id));
  setUnseen([...shown, ...others.filter(({ position }) => isFiltered() || isLater(position, pagePosition))]);
}

// Positions are "milliseconds-number". Events that a front page has listed have none.
function isLater(position, other) {
  const [ms, number] = (position || "0-0").split("-").map(Number);
  const [otherMs, otherNumber] = (other || "0-0").split("-").map(Number);
  return ms > otherMs || (ms === otherMs && number > otherNumber);
}

function showCount() {
  const count = unseen().length;
  document.title = (count && !isKiosk ? `(${count}) ` : "") + title;
  const icon = document.querySelector("link[rel=icon]");
  const name = count ? `icon-${Math.min(count, MAX_ICON_COUNT)}${count > MAX_ICON_COUNT ? "plus" : ""}` : "icon";
  if (!icon.href.endsWith(`/${name}.svg`)) icon.href = `${basePath}/static/${name}.svg`;
  showButton(count);
}

// On the front page while the section is out of view; on other pages for what fired since they were opened.
function showButton(count) {
  const button = document.getElementById("new-events");
  const section = document.getElementById("new-section");
  for (const [id, { at }] of firedHere) if (!isUnread(id, at)) firedHere.delete(id);
  const shown = section ? (section.hidden || isInView(section) ? 0 : count) : firedHere.size;
  const headline = section ? unseen()[0]?.title : [...firedHere.values()].at(-1)?.headline;
  button.textContent = `${shown} new ${shown === 1 ? "event" : "events"}${headline ? `: ${headline}` : ""}`;
  const before = button.offsetHeight;
  button.hidden = shown === 0 || isKiosk;
  if (scrollY) scrollBy(0, button.offsetHeight - before); // it is in the bar: what the reader looks at stays
}

function isInView(section) {
  const { top, bottom } = section.getBoundingClientRect();
  return bottom > BAR_HEIGHT_PX && top < window.innerHeight;
}

function goToNewEvents() {
  const section = document.getElementById("new-section");
  if (!unseen().length && !firedHere.size) return showToast("No event is new since you looked.");
  if (!section || section.hidden) {
    location.href = firedHere.size === 1 ? `${basePath}/events/${encodeURIComponent([...firedHere.keys()][0])}` : `${basePath}/`;
    return;
  }
  section.scrollIntoView({ block: "start" });
  section.querySelector("h2 a")?.focus({ preventScroll: true });
}

function announce(event, position) {
  const headline = event.title || event.terms.join(", ");
  document.getElementById("announcement").textContent = `New event: ${headline}`;
  const at = Date.parse(event.detected_at);
  if (!isUnread(event.id, at)) return;
  firedHere.set(event.id, { headline, at });
  if (unseen().some(({ id }) => id === event.id)) showCount();
  else setUnseen([{ id: event.id, title: headline, at, position }, ...unseen()]);
}

function withdraw(event) {
  firedHere.delete(event.id);
  setUnseen(unseen().filter(({ id }) => id !== event.id));
}

// refresh: fetches the page again, so that the rows move to their lists.
export function start(refresh) {
  const { page, stream } = document.body.dataset;
  if (!document.getElementById("alerts")) return;
  if (page === "report") markSeen(document.querySelector("[data-detected]").dataset.event);
  document.addEventListener("event-change", ({ detail: { kind, event, position } }) => {
    if (kind === "fired") announce(event, position);
    else if (event.muted || event.merged_into) withdraw(event);
  });
  addEventListener("storage", ({ key }) => key?.startsWith("aggregator.") && showCount());
  addEventListener("scroll", () => showButton(unseen().length), { passive: true });
  document.getElementById("new-events").addEventListener("click", goToNewEvents);
  addShortcut("n", "Go to the new events", goToNewEvents);
  if (document.getElementById("mark-seen")) {
    const markSeenNow = async () => {
      const { undo, keep } = clearNew();
      await refresh();
      const text = "No event is new to you now; for others nothing has changed.";
      showToast(text, async () => (undo(), await refresh()), null, keep);
    };
    document.getElementById("mark-seen").addEventListener("click", markSeenNow);
    addShortcut("r", "Clear “New since you looked”, only for you: no status changes", markSeenNow);
  }
  if (!stream && page !== "docs") openStream(`${basePath}/v1/events/stream`);
  showNewEvents(document.body.dataset.after);
  showCount();
}
