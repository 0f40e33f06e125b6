// The switch between compact and comfortable rows; the choice is stored in this browser (display.js applies it).
const KEY = "aggregator.density";
const root = document.documentElement;

function showState(button) {
  const isCompact = root.dataset.density === "compact";
  button.textContent = isCompact ? "Comfortable rows" : "Compact rows";
}

export function start() {
  const button = document.getElementById("density");
  if (!button) return;
  button.hidden = false;
  showState(button);
  button.addEventListener("click", () => {
    root.dataset.density = root.dataset.density === "compact" ? "comfortable" : "compact";
    localStorage.setItem(KEY, root.dataset.density);
    showState(button);
  });
}
