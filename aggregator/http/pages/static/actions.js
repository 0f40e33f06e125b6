// What editors do to events, under a name that is asked for once.
import { refresh } from "./live.js";

const ACTOR = "aggregator.actor";
const DONE = {
  acknowledge: "Acknowledged.",
  mute: "Muted.",
  unmute: "Unmuted.",
  merge: "Merged.",
  remove_item: "Taken out.",
  false_alarm: "Marked as a false alarm.",
};
let fading = 0;

function toast(text) {
  const shown = document.getElementById("toast");
  shown.textContent = text;
  clearTimeout(fading);
  fading = setTimeout(() => (shown.textContent = ""), 6000);
}

function ask(dialog) {
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true });
    dialog.returnValue = "cancel";
    dialog.showModal();
  });
}

function tellActor() {
  const button = document.getElementById("who");
  const actor = localStorage.getItem(ACTOR);
  if (!button || document.body.dataset.who) return;
  button.hidden = !actor;
  button.textContent = actor || "";
  button.title = "The name that colleagues see beside what you do; press to change it";
}

async function askActor() {
  const dialog = document.getElementById("who-dialog");
  const input = document.getElementById("who-name");
  input.value = localStorage.getItem(ACTOR) || "";
  if ((await ask(dialog)) !== "ok" || !input.value.trim()) return null;
  localStorage.setItem(ACTOR, input.value.trim());
  tellActor();
  return input.value.trim();
}

async function send(event, action) {
  // Who has signed in acts under the name of the key.
  const actor = document.body.dataset.who || localStorage.getItem(ACTOR) || (await askActor());
  if (!actor) return;
  try {
    const response = await fetch(`/v1/events/${encodeURIComponent(event)}/actions`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ...action, actor }),
    });
    if (!response.ok) {
      const problem = await response.json().catch(() => ({}));
      throw new Error(problem.detail || `The service answered ${response.status}.`);
    }
    toast(DONE[action.action]);
  } catch (error) {
    toast(error instanceof TypeError ? "Not done: the service cannot be reached." : `Not done: ${error.message}`);
  }
  await refresh();
}

async function merge(event) {
  const dialog = document.getElementById("merge-dialog");
  const choices = document.getElementById("merge-choices");
  const response = await fetch("/v1/events?limit=50");
  const { events } = response.ok ? await response.json() : { events: [] };
  const others = events.filter((other) => other.id !== event && other.status !== "closed" && !other.merged_into);
  if (!others.length) {
    toast("There is no other open event to merge with.");
    return;
  }
  choices.replaceChildren(choices.querySelector("legend"), ...others.map(choice));
  if ((await ask(dialog)) !== "ok") return;
  const into = choices.querySelector("input:checked")?.value;
  if (into) await send(event, { action: "merge", into });
}

function choice(event, place) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  const text = document.createElement("span");
  input.type = "radio";
  input.name = "into";
  input.value = event.id;
  input.checked = place === 0;
  text.dir = "auto";
  text.textContent = `${event.title || event.terms.join(", ")} (${event.size})`;
  label.append(input, text);
  return label;
}

export function start() {
  tellActor();
  document.getElementById("who")?.addEventListener("click", askActor);
  document.addEventListener("click", async (click) => {
    const button = click.target.closest?.("[data-action], [data-merge]");
    if (!button || button.disabled) return;
    button.disabled = true;
    const { action, event, scope, item } = button.dataset;
    if (button.dataset.merge) await merge(button.dataset.merge);
    else await send(event, { action, ...(scope && { scope }), ...(item && { item }) });
    button.disabled = false;
  });
}
