// The reader's time zone in links to days and in forms, and since when the reader was away: kept in this browser.
import { basePath } from "./base_path.js";

const KEY = "aggregator.visit";
const AWAY_MS = 30 * 60_000; // a pause that ends a visit, as web analytics count them
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

// { last: when a page was last open, since: the end of the visit before this one }
function note() {
  const now = Date.now();
  const known = JSON.parse(localStorage.getItem(KEY) || "null") || { last: now, since: null };
  const since = now - known.last > AWAY_MS ? known.last : known.since;
  localStorage.setItem(KEY, JSON.stringify({ last: now, since }));
  return since;
}

// A page of days whose server did not know this zone is loaded again, once; one of today may be of another date.
function noteZone() {
  const cookie = `aggregator_zone=${zone}`;
  const isNoted = () => document.cookie.split("; ").includes(cookie);
  if (isNoted()) return;
  document.cookie = `${cookie}; path=${basePath || "/"}; max-age=31536000; samesite=lax`;
  const page = document.querySelector("[data-zone-shown]");
  if (isNoted() && page) location.replace(page.href || location.href);
}

export function start() {
  noteZone();
  const since = note();
  setInterval(() => document.visibilityState === "visible" && note(), 60_000);
  for (const input of document.querySelectorAll("input[data-zone]")) input.value ||= zone === "UTC" ? "" : zone;
  for (const input of document.querySelectorAll("input[data-own-zone]")) input.value = zone; // of a new desk
  for (const link of document.querySelectorAll("a[data-days]")) {
    const url = new URL(link.href);
    if (zone !== "UTC" && !url.searchParams.has("time_zone")) url.searchParams.set("time_zone", zone);
    if ("since" in link.dataset && since) url.searchParams.set("since", new Date(since).toISOString());
    if ("since" in link.dataset) link.hidden = !since;
    link.href = url;
  }
}
