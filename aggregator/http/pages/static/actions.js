// Editor actions on events. The editor's name is asked for once and kept in the browser.
import { basePath } from "./base_path.js";
import { refresh } from "./live.js";
import { markSeen } from "./read_marks.js";
import { addShortcut } from "./shortcuts.js";
import { showToast, undoLast } from "./toast.js";

const ACTOR_KEY = "aggregator.actor";
const CONFIRMATIONS = {
  acknowledge: "Acknowledged.",
  unacknowledge: "Acknowledgement withdrawn.",
  mute: "Story muted for 7 days.",
  routine: "Muted as routine, with no time limit.",
  unmute: "Unmuted.",
  merge: "Merged.",
  remove_item: "Removed from the event.",
  false_alarm: "Marked as a false alarm.",
  unlink: "Taken out of the storyline.",
  note: "Note added.",
  delete_note: "Note deleted.",
  assign: "Assignment changed.",
  set_work_status: "Status changed.",
  choose_headline: "Headline changed.",
};

// The action that undoes another one.
const UNDO = { acknowledge: "unacknowledge", mute: "unmute", false_alarm: "unmute" };

// Resolves to the value of the button that closed the dialog, "cancel" for Escape.
function openDialog(dialog) {
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true });
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

// Resolves to whether the action was saved.
export async function send(eventId, action) {
  // A signed-in user acts under the name of the access key.
  const actor = document.body.dataset.user || localStorage.getItem(ACTOR_KEY) || (await askActor());
  if (!actor) return false;
  let saved = false;
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
    saved = true;
    const undo = UNDO[action.action];
    const confirmation = CONFIRMATIONS[action.scope] || CONFIRMATIONS[action.action];
    showToast(confirmation, undo ? () => send(eventId, { action: undo }) : null);
    if (undo) await markSeen(eventId);
  } catch (error) {
    const reason = error instanceof TypeError ? "the service cannot be reached." : error.message;
    showToast(`Not saved: ${reason}`);
  }
  await refresh();
  return saved;
}

async function recentEvents() {
  try {
    const response = await fetch(`${basePath}/v1/events?limit=50`);
    return response.ok ? (await response.json()).events : null;
  } catch {
    return null;
  }
}

async function merge(eventId) {
  const dialog = document.getElementById("merge-dialog");
  const choices = document.getElementById("merge-choices");
  const events = await recentEvents();
  if (!events) {
    showToast("The other events cannot be read now. Try again in a moment.");
    return;
  }
  const others = events.filter((other) => other.id !== eventId && other.status !== "closed" && !other.merged_into);
  if (!others.length) {
    showToast("There is no other open event to merge with.");
    return;
  }
  choices.replaceChildren(choices.querySelector("legend"), ...others.map(mergeChoice));
  if ((await openDialog(dialog)) !== "ok") return;
  const into = choices.querySelector("input:checked")?.value;
  if (into) await send(eventId, { action: "merge", into });
}

function mergeChoice(event, index) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  const text = document.createElement("span");
  input.type = "radio";
  input.name = "into";
  input.value = event.id;
  input.checked = index === 0;
  text.dir = "auto";
  text.textContent = `${event.title || event.terms.join(", ")} (${event.size})`;
  label.append(input, text);
  return label;
}

export function start() {
  showActor();
  addShortcut("z", "Undo the last acknowledgement or mute, while its message is shown", undoLast);
  document.getElementById("actor")?.addEventListener("click", askActor);
  document.addEventListener("click", async (click) => {
    const button = click.target.closest?.("[data-action], [data-merge]");
    if (!button || button.ariaDisabled === "true") return;
    button.ariaDisabled = "true"; // a disabled button would lose the focus
    const { action, event, scope, item, workStatus, note } = button.dataset;
    const fields = { scope, item, work_status: workStatus, note: note && Number(note) };
    if (button.dataset.merge) await merge(button.dataset.merge);
    else await send(event, { action, ...fields }); // JSON omits undefined fields
    button.ariaDisabled = null;
  });
}
