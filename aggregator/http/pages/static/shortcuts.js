// Single-key shortcuts of all pages, and the help dialog that lists them. Other modules add theirs with
// addShortcut(). They can be turned off (WCAG 2.1.4), and are ignored in fields, dialogs and with modifiers.

const KEY = "aggregator.shortcuts";
const ROWS = "[data-row], .event, .item, .article-list > li";
const shortcuts = new Map();

// key: KeyboardEvent.key, for example "j" or "?"; run: called with the event, which is then consumed.
export function addShortcut(key, label, run) {
  shortcuts.set(key, { label, run });
}

const isOn = () => localStorage.getItem(KEY) !== "off";

function isTyping(target) {
  return target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio], [type=button]), textarea, select");
}

function handleKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  if (!isOn() || document.querySelector("dialog[open]")) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur(); // so that the next key is a shortcut
    return;
  }
  const shortcut = shortcuts.get(event.key);
  if (!shortcut) return;
  event.preventDefault();
  shortcut.run(event);
}

function visibleRows() {
  return [...document.querySelectorAll(ROWS)].filter((row) => row.checkVisibility() && row.querySelector("a, button"));
}

export function currentRow() {
  return document.activeElement?.closest(ROWS);
}

// Moves the focus by one row; without a current row to the first one in view.
function move(step) {
  const rows = visibleRows();
  const at = rows.indexOf(currentRow());
  const next = at >= 0 ? rows[at + step] : rows.find((row) => row.getBoundingClientRect().bottom > 60) || rows[0];
  const link = next?.querySelector("h2 a, .headline a") || next?.querySelector("a, button");
  if (!link) return;
  link.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function openRow() {
  currentRow()?.querySelector("h2 a, .headline a")?.click();
}

function openHelp() {
  const list = document.getElementById("shortcut-list");
  list.replaceChildren(
    ...[...shortcuts].flatMap(([key, { label }]) => {
      const term = document.createElement("dt");
      const name = document.createElement("kbd");
      const meaning = document.createElement("dd");
      name.textContent = key;
      meaning.textContent = label;
      term.append(name);
      return [term, meaning];
    }),
  );
  document.getElementById("shortcuts-on").checked = isOn();
  document.getElementById("help-dialog").showModal();
}

export function start() {
  document.addEventListener("keydown", handleKey);
  const button = document.getElementById("help");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", openHelp);
  document.getElementById("shortcuts-on").addEventListener("change", ({ target }) => {
    localStorage.setItem(KEY, target.checked ? "on" : "off");
  });
  addShortcut("j", "Next event or article", () => move(1));
  addShortcut("k", "Previous event or article", () => move(-1));
  addShortcut("o", "Open it (Enter does so too)", openRow);
  addShortcut("?", "This help", openHelp);
}
