// Report page: form for notes, selected articles, figures of the spread chart, and the link to copy.
import { chooseEvent, send } from "./actions.js";
import { addShortcut, currentRow } from "./shortcuts.js";
import { showToast } from "./toast.js";

const HINT = `${matchMedia("(hover: none)").matches ? "Tap a bar" : "Point at a bar, or use the arrow keys,"} to read its figures and sources.`;
let shownBin = -1;

// The focus leaves the field at once, so that the next key is not written into it.
async function submitForm(form) {
  const button = form.querySelector("button");
  const field = form.querySelector("textarea");
  if (button.ariaDisabled === "true" || !field.value.trim()) return;
  button.ariaDisabled = "true";
  button.focus();
  if (await send(form.dataset.event, { action: form.dataset.form, [field.name]: field.value.trim() })) field.value = "";
  button.ariaDisabled = null;
}

// Selected rows by article id: each holds the ids of the article and of its copies.
const selected = new Map();

function showSelection() {
  const bar = document.getElementById("selection");
  if (!bar) return;
  for (const box of document.querySelectorAll("[data-select]")) box.checked = selected.has(box.dataset.select);
  const count = new Set([...selected.values()].flat()).size;
  bar.hidden = !count;
  bar.querySelector("[data-selected=choose_headline]").hidden = selected.size !== 1;
  const folded = count - selected.size;
  const copies = folded ? `, ${folded} of them ${folded === 1 ? "a folded copy" : "folded copies"}` : "";
  document.getElementById("selected-count").textContent = `${count} selected${copies}`;
}

async function actOnSelection(action) {
  const bar = document.getElementById("selection");
  const { event } = bar.dataset;
  const items = [...new Set([...selected.values()].flat())];
  const note = "That event receives the selected articles.";
  const into = action === "move" ? await chooseEvent(event, "Move to which event?", note) : undefined;
  if (into === null) return;
  const fields = action === "choose_headline" ? { item: items[0] } : { items, into };
  if (action && !(await send(event, { action: into ? "move_items" : action, ...fields }))) return;
  selected.clear();
  showSelection();
  document.getElementById("items").focus();
}

// The text of one row of the table: "14:20: 5 new, 17 in total. Quay News, Pier Nine".
function rowText(row) {
  const [time, added, total, sources] = [...row.cells].map((cell) => cell.textContent.trim());
  return `${time}: ${added} new, ${total} in total.${sources ? ` ${sources}` : ""}`;
}

function showBin(figure, index) {
  const rows = figure.querySelector("[data-spread-rows]").rows;
  shownBin = Math.max(-1, Math.min(rows.length - 1, index));
  for (const hit of figure.querySelectorAll(".hit")) hit.classList.toggle("at", Number(hit.dataset.bin) === shownBin);
  figure.querySelector("[data-spread-value]").textContent = rows[shownBin] ? rowText(rows[shownBin]) : HINT;
}

function readBars(event) {
  const figure = event.target.closest?.("[data-spread]")?.closest("figure");
  if (!figure) return;
  const last = figure.querySelector("[data-spread-rows]").rows.length - 1;
  const target = { ArrowRight: shownBin + 1, ArrowLeft: shownBin < 0 ? last : Math.max(0, shownBin - 1), Home: 0, End: last, Escape: -1 }[event.key];
  if (target === undefined) return;
  event.preventDefault();
  showBin(figure, target);
}

async function copyLink(event) {
  const link = event.target.closest?.("[data-copy-link]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !navigator.clipboard) return;
  event.preventDefault();
  try {
    await navigator.clipboard.writeText(link.href);
    showToast("Link copied.");
  } catch {
    location.href = link.href;
  }
}

// What an event that was merged into another one lacks.
function act(selector, use) {
  const element = document.querySelector(selector);
  if (element) use(element);
  else showToast("This event was merged into another one.");
}

function addShortcuts() {
  addShortcut("c", "Write a note", () => act("#note-text", (field) => field.focus()));
  addShortcut("e", "Select the article, to remove, split off or move it", () => currentRow()?.querySelector("[data-select]")?.click());
}

export function start() {
  if (document.body.dataset.page !== "report") return;
  addShortcuts();
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-form]")) return;
    event.preventDefault();
    submitForm(event.target);
  });
  document.addEventListener("keydown", readBars);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.closest?.("[data-form]")?.requestSubmit();
  });
  document.addEventListener("change", ({ target }) => {
    if (!target.matches("[data-select]")) return;
    if (target.checked) selected.set(target.dataset.select, JSON.parse(target.dataset.select));
    else selected.delete(target.dataset.select);
    showSelection();
    currentRow()?.scrollIntoView({ block: "nearest" }); // the bar of the selection may cover it
  });
  document.addEventListener("refreshed", showSelection);
  document.getElementById("selection")?.addEventListener("click", ({ target }) => {
    if ("selected" in target.dataset) actOnSelection(target.dataset.selected);
  });
  document.addEventListener("click", copyLink);
  document.addEventListener("click", ({ target }) => {
    if (!("selectAll" in target.dataset)) return;
    const boxes = target.closest("h3").parentElement.querySelectorAll("h3 ~ .article-rows [data-select]:not(:checked)");
    for (const box of boxes) box.click();
  });
  document.addEventListener("pointerover", (event) => {
    const hit = event.target.closest?.(".hit");
    if (hit) showBin(hit.closest("figure"), Number(hit.dataset.bin));
  });
}
