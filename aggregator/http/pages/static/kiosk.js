// A wall screen: as many rows at a time as fit, each on one page; the pages turn, and the first comes back when an
// event is new. Shows the time of the last update, and says when there is none. Space stops the pages, Escape leaves.
const TURN_MS = 12000;
const TICK_MS = 1000;
const clockFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const updateFormat = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" });
const known = new Set(); // ids of new events that were shown
let updatedMs = 0;
let problem = "";
let isPaused = false;
let page = 0;
let turnMs = 0; // when the page turns

function setText(id, text) {
  const node = document.getElementById(id);
  if (node.textContent !== text) node.textContent = text;
}

function showState() {
  setText("kiosk-clock", clockFormat.format(new Date()));
  const at = updatedMs ? updateFormat.format(updatedMs) : "never";
  if (problem) setText("kiosk-updated", `Connection lost; last update ${at}. Reconnecting …`);
  else if (updatedMs) setText("kiosk-updated", `Updated ${at}`);
  document.body.toggleAttribute("data-disconnected", Boolean(problem));
}

function showPage() {
  const list = document.getElementById("events");
  const rows = [...list.children];
  for (const row of rows) row.hidden = false;
  const room = window.innerHeight - document.getElementById("kiosk-published").offsetHeight - (list.getBoundingClientRect().top + window.scrollY);
  let [number, top] = [0, rows[0].offsetTop];
  const pages = rows.map((row) => {
    if (row.offsetTop > top && row.offsetTop + row.offsetHeight - top > room) [number, top] = [number + 1, row.offsetTop];
    return number;
  });
  // Top stories fill the last page of events, not a separate page.
  const count = pages[list.querySelectorAll("li:not(.top-story)").length - 1] + 1;
  page %= count;
  rows.forEach((row, index) => (row.hidden = pages[index] !== page));
  setText("kiosk-page", count > 1 ? `${page + 1} of ${count}${isPaused ? ", stopped" : ""}` : "");
}

// New events are on the first page, which stays twice as long while there are any.
function turnTo(number) {
  page = number;
  showPage();
  const hasNew = document.querySelector("#events > .fresh:not([hidden])") !== null;
  turnMs = Date.now() + (hasNew ? 2 : 1) * TURN_MS;
}

function refreshed() {
  const fresh = [...document.querySelectorAll("#events > .fresh")].map((row) => row.dataset.event + (row.matches(".back") ? " back" : ""));
  const hasArrived = fresh.some((id) => !known.has(id));
  for (const id of fresh) known.add(id);
  if (hasArrived) turnTo(0);
  else showPage();
}

document.addEventListener("refreshed", ({ detail }) => {
  problem = detail.problem;
  if (!problem) updatedMs = Date.now();
  showState();
  refreshed();
});
document.addEventListener("keydown", ({ key }) => {
  if (key === " ") {
    isPaused = !isPaused;
    showPage();
  }
  if (key === "Escape") {
    const url = new URL(location.href);
    url.searchParams.delete("kiosk");
    location.href = url;
  }
});
addEventListener("resize", showPage);
setInterval(() => {
  showState();
  if (!isPaused && Date.now() >= turnMs) turnTo(page + 1);
}, TICK_MS);
turnTo(0);
refreshed();
showState();
