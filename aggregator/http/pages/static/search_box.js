// The search field of every page: "/" focuses it, Enter sends it; a text, too long for an address, in a body.
import { addShortcut } from "./shortcuts.js";

const MAX_ADDRESS_CHARS = 200;

// On a phone the results come first: fields without a value are behind a button.
function foldFilters(form) {
  const filters = document.getElementById("search-filters");
  const toggle = document.getElementById("search-filters-toggle");
  const isInUse = [...filters.querySelectorAll("input, select")].some((field) => field.value && field.value !== "relevance");
  if (isInUse) return;
  form.dataset.folded = "";
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    toggle.hidden = true;
    delete form.dataset.folded;
    filters.querySelector("input").focus();
  });
}

export function start() {
  const box = document.getElementById("search-box");
  if (!box) return;
  addShortcut("/", "Search", () => {
    box.focus();
    box.select();
  });
  box.form.addEventListener("submit", () => {
    if (box.value.trim().length > MAX_ADDRESS_CHARS) box.form.method = "post";
  });
  if (box.tagName !== "TEXTAREA") return;
  foldFilters(box.form);
  const fit = () => {
    box.rows = 1;
    while (box.rows < 9 && box.scrollHeight > box.clientHeight) box.rows += 1;
  };
  fit();
  box.addEventListener("input", fit);
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    box.form.requestSubmit();
  });
}
