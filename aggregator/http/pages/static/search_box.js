// The search box of every page: "/" focuses it.
import { addShortcut } from "./shortcuts.js";

export function start() {
  const box = document.getElementById("search-box");
  if (!box) return;
  addShortcut("/", "Search", () => {
    box.focus();
    box.select();
  });
}
