// Times relative to now or in the reader's time zone, on paper with their dates; the server sends UTC for browsers
// without scripts.
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];
const relativeFormat = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const fullFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const dateFormat = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const clockFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const printedFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });

function relativeTime(date) {
  const seconds = (date - Date.now()) / 1000;
  if (Math.abs(seconds) >= 30 * 86400) return dateFormat.format(date);
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return relativeFormat.format(Math.trunc(seconds / size), unit);
  }
  return "just now";
}

function exactTime(date) {
  const isToday = new Date().toDateString() === date.toDateString() && !document.querySelector("[data-other-day]");
  return isToday ? clockFormat.format(date) : `${dateFormat.format(date)}, ${clockFormat.format(date)}`;
}

let isPrinting = false; // a live update meanwhile keeps the dates

export function updateTimes() {
  const isPrinted = isPrinting || document.querySelector(".print-view") !== null;
  for (const time of document.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    const text = isPrinted ? printedFormat.format(date) : "exact" in time.dataset ? exactTime(date) : relativeTime(date);
    if (time.textContent !== text) time.textContent = text;
    if (!time.title) time.title = fullFormat.format(date);
  }
  for (const tick of document.querySelectorAll("[data-time]")) tick.textContent = clockFormat.format(Number(tick.dataset.time));
  for (const tick of document.querySelectorAll("[data-day]")) tick.textContent = dateFormat.format(Number(tick.dataset.day));
}

function setPrinting(value) {
  isPrinting = value;
  updateTimes();
}

addEventListener("beforeprint", () => setPrinting(true));
addEventListener("afterprint", () => setPrinting(false));
