// New events: a badge on those since the last visit, a button for those outside the view, desktop notifications.
const VISIT_KEY = "aggregator.visit";
const NOTIFY_KEY = "aggregator.notify";
const VISIT_GAP_MS = 15 * 60 * 1000;
const SAVE_INTERVAL_MS = 30 * 1000;
const BAR_HEIGHT_PX = 60;
let lastVisitMs = 0;
let unseenRows = [];

// A visit ends after 15 minutes without this page; in the next one, events detected since then are new.
function startVisit() {
  const now = Date.now();
  const visit = JSON.parse(localStorage.getItem(VISIT_KEY) || "null") || { since: 0, last: 0 };
  if (visit.last && now - visit.last > VISIT_GAP_MS) visit.since = visit.last;
  if (!visit.last) visit.since = now;
  lastVisitMs = visit.since;
  const save = () => {
    if (!document.hidden) localStorage.setItem(VISIT_KEY, JSON.stringify({ since: lastVisitMs, last: Date.now() }));
  };
  save();
  setInterval(save, SAVE_INTERVAL_MS);
  addEventListener("pagehide", save);
}

function showBadges() {
  for (const row of document.querySelectorAll("[data-detected]")) {
    const badge = row.querySelector(".new-badge");
    if (badge) badge.hidden = !(Number(row.dataset.detected) > lastVisitMs);
  }
}

function isInView(row) {
  const { top, bottom } = row.getBoundingClientRect();
  return bottom > BAR_HEIGHT_PX && top < window.innerHeight;
}

// Called for every row that a refresh adds.
export function addNewEvent(row) {
  if (!row.matches("#events > [data-detected]")) return;
  row.classList.add("arrived");
  unseenRows.push(row.dataset.key);
}

// The button counts new events that have not been in view since they were added.
export function showNewEvents() {
  showBadges();
  const button = document.getElementById("new-events");
  if (!button) return;
  unseenRows = unseenRows.filter((key) => {
    const row = rowOf(key);
    return row && (document.hidden || !isInView(row));
  });
  button.hidden = unseenRows.length === 0;
  button.textContent = unseenRows.length === 1 ? "1 new event" : `${unseenRows.length} new events`;
}

function rowOf(key) {
  return document.querySelector(`#events > [data-key="${CSS.escape(key)}"]`);
}

function startNotifications() {
  const button = document.getElementById("notify");
  if (!button || !("Notification" in window)) return;
  const isOn = () => localStorage.getItem(NOTIFY_KEY) === "yes" && Notification.permission === "granted";
  const showState = () => {
    button.hidden = false;
    button.setAttribute("aria-pressed", String(isOn()));
    button.textContent = isOn() ? "Notifications on" : "Notify me";
    button.title = isOn() ? "Click to stop notifications of new events" : "Notify me of new events while this page is open";
  };
  button.addEventListener("click", async () => {
    if (isOn()) localStorage.setItem(NOTIFY_KEY, "no");
    else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(NOTIFY_KEY, "yes");
    showState();
  });
  document.addEventListener("event-change", ({ detail: { kind, event } }) => {
    if (kind !== "fired" || !isOn() || !document.hidden) return;
    const notification = new Notification(event.title || "New event", {
      body: `${event.size} items from ${event.sources.length} ${event.sources.length === 1 ? "source" : "sources"}`,
      tag: event.id,
    });
    notification.onclick = () => {
      window.focus();
      location.href = `/events/${encodeURIComponent(event.id)}`;
    };
  });
  showState();
}

export function start() {
  startVisit();
  showBadges();
  startNotifications();
  document.getElementById("new-events")?.addEventListener("click", () => {
    const row = rowOf(unseenRows[0]);
    row?.scrollIntoView({ block: "center" });
    row?.querySelector("a")?.focus({ preventScroll: true });
  });
  addEventListener("scroll", showNewEvents, { passive: true });
}
