// The front page on a wall screen: turns its pages, shows the time of the last update, and says when it has none.
const TURN_MS = 12000;
const TICK_MS = 1000;
const clockFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const updateFormat = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" });
let updatedMs = 0;
let problem = "";
let isPaused = matchMedia("(prefers-reduced-motion: reduce)").matches;

function showState() {
  document.getElementById("kiosk-clock").textContent = clockFormat.format(new Date());
  const state = document.getElementById("kiosk-updated");
  const at = updatedMs ? updateFormat.format(updatedMs) : "never";
  const text = problem ? `Connection lost; last update ${at}. Reconnecting …` : updatedMs ? `Updated ${at}` : state.textContent;
  if (state.textContent !== text) state.textContent = text;
  document.body.toggleAttribute("data-disconnected", Boolean(problem));
}

// Scrolls to the first row that is not wholly in view, at the end back to the top.
function turnPage() {
  if (isPaused) return;
  const top = document.querySelector(".section-head").getBoundingClientRect().bottom;
  const below = [...document.querySelectorAll("#events > li")].find((row) => row.getBoundingClientRect().bottom > window.innerHeight + 1);
  if (below && below.getBoundingClientRect().top > top) window.scrollBy(0, below.getBoundingClientRect().top - top);
  else window.scrollTo(0, 0);
}

document.addEventListener("refreshed", ({ detail }) => {
  problem = detail.problem;
  if (!problem) updatedMs = Date.now();
  showState();
});
document.addEventListener("keydown", ({ key }) => {
  if (key === " ") isPaused = !isPaused;
  if (key === "Escape") {
    const url = new URL(location.href);
    url.searchParams.delete("kiosk");
    location.href = url;
  }
});
setInterval(showState, TICK_MS);
setInterval(turnPage, TURN_MS);
showState();
