// The tour of the front page in a demonstration: hints one after the other, until they are dismissed in this browser.
const KEY = "aggregator.tour";

export function start() {
  const tour = document.getElementById("tour");
  if (!tour || localStorage.getItem(KEY) === "dismissed") return;
  const hints = [...tour.querySelectorAll(".hint")];
  const next = document.getElementById("tour-next");
  let at = 0;

  function show() {
    hints.forEach((hint, number) => { hint.hidden = number !== at; });
    document.getElementById("tour-position").textContent = `Hint ${at + 1} of ${hints.length}`;
    next.hidden = at === hints.length - 1;
  }

  function dismiss() {
    localStorage.setItem(KEY, "dismissed");
    tour.hidden = true;
  }

  next.addEventListener("click", () => {
    at += 1;
    show();
    if (next.hidden) document.getElementById("tour-dismiss").focus();
  });
  document.getElementById("tour-dismiss").addEventListener("click", dismiss);
  tour.addEventListener("keydown", (event) => {
    if (event.key === "Escape") dismiss();
  });
  tour.hidden = false;
  show();
}
