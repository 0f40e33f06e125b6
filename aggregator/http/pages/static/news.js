// What is new since the last visit, and a notification for those who asked for one.
const VISIT = "aggregator.visit";
const NOTIFY = "aggregator.notify";
const NEW_VISIT_MS = 15 * 60 * 1000;
let since = 0;
let unseen = 0;

// A visit goes on while the reader comes back within a quarter of an hour; then what came since is new.
function visit() {
  const now = Date.now();
  const known = JSON.parse(localStorage.getItem(VISIT) || "null") || { since: 0, last: 0 };
  if (known.last && now - known.last > NEW_VISIT_MS) known.since = known.last;
  if (!known.last) known.since = now;
  since = known.since;
  const keep = () => {
    if (!document.hidden) localStorage.setItem(VISIT, JSON.stringify({ since, last: Date.now() }));
  };
  keep();
  setInterval(keep, 30000);
  addEventListener("pagehide", keep);
}

function mark(root) {
  for (const row of root.querySelectorAll("[data-detected]")) {
    const label = row.querySelector(".fresh");
    if (label) label.hidden = !(Number(row.dataset.detected) > since);
  }
}

// An event came in above what is being read: say so without moving it.
export function arrived(node) {
  if (!node.matches("#events > [data-detected]")) return;
  node.classList.add("arrived");
  if (window.scrollY > 200) unseen += 1;
}

export function told() {
  mark(document);
  const above = document.getElementById("above");
  if (!above) return;
  above.hidden = unseen === 0;
  above.textContent = unseen === 1 ? "1 new event above" : `${unseen} new events above`;
}

function notifier() {
  const button = document.getElementById("notify");
  if (!button || !("Notification" in window)) return;
  const wanted = () => localStorage.getItem(NOTIFY) === "yes" && Notification.permission === "granted";
  const tell = () => {
    button.hidden = false;
    button.setAttribute("aria-pressed", String(wanted()));
    button.textContent = wanted() ? "Notifying" : "Notify me";
    button.title = wanted() ? "A notification comes with each new event; press to stop" : "A notification for each new event while this page is open";
  };
  button.addEventListener("click", async () => {
    if (wanted()) localStorage.setItem(NOTIFY, "no");
    else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(NOTIFY, "yes");
    tell();
  });
  document.addEventListener("news", ({ detail: { kind, event } }) => {
    if (kind !== "fired" || !wanted() || !document.hidden) return;
    const shown = new Notification(event.title || "A new event", {
      body: `${event.size} items from ${event.sources.length} sources`,
      tag: event.id,
    });
    shown.onclick = () => {
      window.focus();
      location.href = `/events/${encodeURIComponent(event.id)}`;
    };
  });
  tell();
}

export function start() {
  visit();
  mark(document);
  notifier();
  const above = document.getElementById("above");
  const reset = () => {
    if (window.scrollY < 60) {
      unseen = 0;
      told();
    }
  };
  above?.addEventListener("click", () => {
    window.scrollTo(0, 0);
    document.querySelector("#events a")?.focus({ preventScroll: true });
  });
  addEventListener("scroll", reset, { passive: true });
}
