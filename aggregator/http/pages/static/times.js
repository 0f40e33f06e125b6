// Times as people say them, in the reader's own zone.
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const date = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

function ago(moment) {
  const seconds = (moment - Date.now()) / 1000;
  if (Math.abs(seconds) >= 30 * 86400) return date.format(moment);
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return "just now";
}

function exact(moment) {
  const today = new Date().toDateString() === moment.toDateString();
  return today ? clock.format(moment) : `${date.format(moment)}, ${clock.format(moment)}`;
}

// The server writes UTC for browsers without scripts; this says the same for the reader.
export function tellTimes(root = document) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    const text = "exact" in time.dataset ? exact(moment) : ago(moment);
    if (time.textContent !== text) time.textContent = text;
    if (!time.title) time.title = absolute.format(moment);
  }
  for (const tick of root.querySelectorAll("[data-time]")) tick.textContent = clock.format(Number(tick.dataset.time));
}
