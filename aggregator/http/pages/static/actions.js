// Editor actions on events. The editor's name is asked for once and kept in the browser.
import { basePath } from "./base_path.js";
import { refresh } from "./live.js";
import { markSeen } from "./read_marks.js";
import { addShortcut, currentRow } from "./shortcuts.js";
import { showToast, undoLast } from "./toast.js";

const ACTOR_KEY = "aggregator.actor";
const MOVED_TOAST_KEY = "aggregator.toast"; // a message that the page opened next shows
const STATUS = { new: "Marked as not handled.", seen: "Marked as seen for everyone; it is under Handled now.", on_it: "On it.", published: "Marked as published.", dropped: "Dropped." };
const CONFIRMATIONS = {
  mute: "Story muted for 7 days.",
  routine: "Muted as routine, with no time limit.",
  unmute: "It is news after all.",
  merge: "Merged.",
  remove_item: "Removed from the event.",
  move_items: "Moved.",
  false_alarm: "Marked as a false alarm.",
  unlink: "Taken out of the storyline.",
  note: "Note added.",
  delete_note: "Note deleted.",
  undo: "Undone.",
  choose_headline: "Headline changed.",
};
const UNCHANGED = { seen: "It is already marked as seen", published: "It is already marked as published", dropped: "It is already dropped" };

// Resolves to the value of the button that closed the dialog, "cancel" for Escape.
function openDialog(dialog) {
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue || "cancel"), { once: true });
    dialog.returnValue = "cancel";
    dialog.showModal();
  });
}

function showActor() {
  const button = document.getElementById("actor");
  const actor = localStorage.getItem(ACTOR_KEY);
  if (!button || document.body.dataset.user) return;
  button.hidden = !actor;
  button.textContent = actor || "";
  button.title = "Your name, shown next to your actions. Click to change it.";
}

async function askActor() {
  const dialog = document.getElementById("actor-dialog");
  const input = document.getElementById("actor-name");
  input.value = localStorage.getItem(ACTOR_KEY) || "";
  if ((await openDialog(dialog)) !== "ok" || !input.value.trim()) return null;
  localStorage.setItem(ACTOR_KEY, input.value.trim());
  showActor();
  return input.value.trim();
}

// Resolves to the event as it is then, null if the action was not saved.
export async function send(eventId, action) {
  // A signed-in user acts under the name of the access key.
  const actor = document.body.dataset.user || localStorage.getItem(ACTOR_KEY) || (await askActor());
  if (!actor) return null;
  let event = null;
  try {
    const response = await fetch(`${basePath}/v1/events/${encodeURIComponent(eventId)}/actions`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ...action, actor }),
    });
    if (!response.ok) {
      const problem = await response.json().catch(() => ({}));
      throw new Error(problem.detail || `the service returned status ${response.status}.`);
    }
    event = await response.json();
    confirm(event, action, actor);
    await markSeen(eventId);
  } catch (error) {
    const reason = error instanceof TypeError ? "the service cannot be reached." : error.message;
    showToast(`Not saved: ${reason}`);
  }
  await refresh();
  return event;
}

function confirm(event, acted, actor) {
  const { action, scope, work_status: status, assignee, into } = acted;
  if (event.done === null) return showUnchanged(event, acted, actor);
  const text = assignee ? `On it: ${assignee}.` : STATUS[status] || CONFIRMATIONS[scope] || CONFIRMATIONS[action];
  const of = action === "undo" ? null : event.done;
  const isSplit = action === "move_items" && !into;
  const isAdded = into === event.id && action === "move_items";
  const shown = { text: isSplit ? "Split off into a new event." : isAdded ? "Added to this event." : text, event: event.id, of, link: isSplit ? event.actions.at(-1).into : null };
  if (action !== "merge" && !isAdded) return showUndoToast(shown);
  sessionStorage.setItem(MOVED_TOAST_KEY, JSON.stringify(shown));
  location.href = `${basePath}/events/${encodeURIComponent(event.id)}`;
}

// The event was so before: nothing to undo. An event that a colleague is on may be taken over.
function showUnchanged(event, { work_status: status, assignee }, actor) {
  const by = status === "seen" ? event.acknowledged_by : event.actions.findLast((done) => done.work_status === status)?.actor;
  const text = UNCHANGED[status] ? `${UNCHANGED[status]}${by ? `, by ${by}` : ""}.` : "Nothing changed: it was so already.";
  if (status !== "on_it" && !assignee) return showToast(text);
  const isOthers = event.assignee !== actor && !assignee;
  const takeOver = () => send(event.id, { action: "set_work_status", work_status: "on_it", assignee: actor });
  showToast(`${event.assignee === actor ? "You are" : `${event.assignee} is`} already on it.`, null, null, null, isOthers && { label: "Take over", act: takeOver });
}

function showUndoToast({ text, event, of, link }) {
  const url = link && `${basePath}/events/${encodeURIComponent(link)}`;
  showToast(text, of && (() => send(event, { action: "undo", of })), url);
}

async function recentEvents() {
  try {
    const response = await fetch(`${basePath}/v1/events?limit=50`);
    return response.ok ? (await response.json()).events : null;
  } catch {
    return null;
  }
}

// Resolves to the id of the event that the reader chose, null for none.
export async function chooseEvent(eventId, title, note) {
  const dialog = document.getElementById("event-dialog");
  const choices = document.getElementById("event-choices");
  const search = document.getElementById("event-search");
  const events = await recentEvents();
  if (!events) {
    showToast("The other events cannot be read now. Try again in a moment.");
    return null;
  }
  const others = events.filter((other) => other.id !== eventId && other.status !== "closed" && !other.merged_into);
  if (!others.length) {
    showToast("There is no other open event.");
    return null;
  }
  document.getElementById("event-title").textContent = title;
  document.getElementById("event-note").textContent = note;
  choices.replaceChildren(choices.querySelector("legend"), ...others.map(eventChoice));
  search.value = "";
  search.oninput = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const label of choices.querySelectorAll("label")) {
      label.hidden = !words.every((word) => label.textContent.toLowerCase().includes(word));
      if (label.hidden) label.querySelector("input").checked = false;
    }
    const shown = choices.querySelectorAll("label:not([hidden]) input");
    if (search.value.trim() && shown.length === 1) shown[0].checked = true;
    proceed();
  };
  const submit = dialog.querySelector("button[value=ok]");
  const proceed = () => (submit.disabled = !choices.querySelector("input:checked"));
  choices.onchange = proceed;
  proceed();
  return (await openDialog(dialog)) === "ok" ? choices.querySelector("input:checked")?.value || null : null;
}

async function merge(eventId) {
  const note = "The selected event receives all items; this one is closed and links to it.";
  const into = await chooseEvent(eventId, "Merge into which event?", note);
  if (into) await send(eventId, { action: "merge", into });
}

// A new name has to be confirmed: those of the last events are known.
async function askAssignee() {
  const dialog = document.getElementById("name-dialog");
  const input = document.getElementById("assignee");
  const problem = document.getElementById("name-problem");
  const own = document.body.dataset.user || localStorage.getItem(ACTOR_KEY);
  const events = (await recentEvents()) || [];
  const known = new Set([own, ...events.flatMap((event) => [event.assignee, ...event.actions.map((action) => action.actor)])].filter(Boolean));
  document.getElementById("editors").replaceChildren(...[...known].sort().map((name) => new Option("", name)));
  input.value = problem.textContent = "";
  let confirmed = "";
  dialog.querySelector("form").onsubmit = (submit) => {
    const name = input.value.trim();
    if (submit.submitter?.value === "cancel" || known.has(name) || name === confirmed) return;
    submit.preventDefault();
    confirmed = name;
    problem.textContent = name && `“${name}” has done nothing here yet. Once more to assign it to this name.`;
  };
  return (await openDialog(dialog)) === "ok" ? input.value.trim() : null;
}

// Opens a menu at its button; resolves to the value of the entry that was chosen.
async function openMenu(menu, button) {
  const { left, bottom, top } = button.getBoundingClientRect();
  for (const entry of menu.querySelectorAll("button")) {
    if (entry.value === button.dataset.status) entry.setAttribute("aria-current", "true");
    else entry.removeAttribute("aria-current");
  }
  const chosen = openDialog(menu);
  const { width, height } = menu.getBoundingClientRect();
  menu.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  menu.style.top = `${bottom + height + 8 > innerHeight ? Math.max(8, top - height - 4) : bottom + 4}px`;
  return chosen;
}

async function setStatus(event, status) {
  const assignee = status === "name" ? await askAssignee() : undefined;
  if (assignee === null) return;
  await send(event, { action: "set_work_status", work_status: assignee ? "on_it" : status, assignee });
}

async function chooseFromMenu(button) {
  const { menu, event } = button.dataset;
  const choice = await openMenu(document.getElementById(menu), button);
  if (choice === "cancel") return;
  if (menu === "status-menu") await setStatus(event, choice);
  else if (choice === "false_alarm") await send(event, { action: "false_alarm" });
  else await send(event, { action: "mute", scope: choice });
}

// Calls `use` with the button of a menu of the current row, or of the toolbar of a page that shows one event.
function withMenu(menu, use) {
  const row = currentRow();
  const button = (row?.matches(".event") ? row : document).querySelector(`[data-menu="${menu}"]`);
  if (!button || (button.closest(".event") && !row)) showToast("Select an event with j and k that is not muted or ended.");
  else use(button);
}

function mergeCurrent() {
  const row = currentRow();
  const event = (row?.matches(".event") ? row : document.querySelector("[data-merge]"))?.dataset;
  if (event) merge(event.merge || event.event);
  else showToast(document.body.dataset.page === "report" ? "This event was merged into another one." : "Select an event with j and k.");
}

const setRowStatus = (status) => withMenu("status-menu", ({ dataset }) => setStatus(dataset.event, status));

// Arrow keys move within a menu; a click outside closes it.
function startMenus() {
  for (const menu of document.querySelectorAll("dialog.menu")) {
    menu.addEventListener("click", (click) => click.target === menu && menu.close("cancel"));
    menu.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const entries = [...menu.querySelectorAll("button")];
      if (!step) return;
      event.preventDefault();
      entries.at((entries.indexOf(document.activeElement) + step) % entries.length).focus();
    });
  }
}

function eventChoice(event) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  const text = document.createElement("span");
  input.type = "radio";
  input.name = "into";
  input.value = event.id;
  text.dir = "auto";
  text.textContent = `${event.title || event.terms.join(", ")} (${event.size})`;
  label.append(input, text);
  return label;
}

// Only where the page shows events that they act on: the help lists what works.
function addEventShortcuts() {
  addShortcut("a", "Status Seen, for everyone: the event moves to Handled", () => setRowStatus("seen"));
  addShortcut("w", "Status “I am on it”", () => setRowStatus("on_it"));
  addShortcut("i", "Assign the event to somebody", () => setRowStatus("name"));
  addShortcut("s", "Status of the event, from a menu: not handled, seen, on it, published, dropped", () => withMenu("status-menu", chooseFromMenu));
  addShortcut("m", "Not news: mute the story, routine, false alarm", () => withMenu("not-news-menu", chooseFromMenu));
  addShortcut("x", "Merge the event into another one", mergeCurrent);
}

export function start() {
  showActor();
  startMenus();
  const left = JSON.parse(sessionStorage.getItem(MOVED_TOAST_KEY) || "null");
  sessionStorage.removeItem(MOVED_TOAST_KEY);
  if (left) showUndoToast(left);
  if (document.body.dataset.page !== "events") addShortcut("u", "Back to the events", () => { location.href = `${basePath}/`; });
  if (document.querySelector("#events, [data-merge], [data-menu]")) addEventShortcuts();
  addShortcut("z", "Undo the last action, while its message is shown", undoLast);
  document.getElementById("actor")?.addEventListener("click", askActor);
  document.addEventListener("click", async (click) => {
    const button = click.target.closest?.("[data-action], [data-merge], [data-menu]");
    if (!button || button.ariaDisabled === "true") return;
    if (button.dataset.menu) return chooseFromMenu(button); // a dialog: while it is open nothing else can be clicked
    button.ariaDisabled = "true"; // a disabled button would lose the focus
    const { action, event, item, items, note, of, into } = button.dataset;
    const fields = into ? { items: action === "merge" ? undefined : items ? JSON.parse(items) : [item], into } : { item, note: note && Number(note), of: of && Number(of) };
    if (button.dataset.merge) await merge(button.dataset.merge);
    else await send(event, { action, ...fields }); // JSON omits undefined fields
    button.ariaDisabled = null;
  });
}
