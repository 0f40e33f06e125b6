// Pages of desks and targets: a new desk starts with the time zone of the browser; a removal waits for an Undo.
import { refreshWhole } from "./live.js";
import { showToast } from "./toast.js";

for (const field of document.querySelectorAll('form[action$="/desks"] [data-time-zone]')) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!field.form.elements.name.value && zone) field.value = zone;
}

let waiting = null;

// Sent when the message with the Undo closes, or the page is left before.
async function remove({ url, body, what }) {
  waiting = null;
  let problem = "the service cannot be reached";
  try {
    const response = await fetch(url, { method: "POST", body, keepalive: true });
    if (response.ok && new URL(response.url).pathname !== location.pathname) return location.assign(response.url);
    problem = response.ok ? "" : `the service answered ${response.status}`;
  } catch {} // no connection
  showToast(`${what}: ${problem ? `not removed, ${problem}` : "removed"}.`);
  refreshWhole();
}

document.addEventListener("submit", (event) => {
  const { target: form, submitter } = event;
  if (!submitter?.dataset.removes) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, submitter));
  const removal = { url: form.getAttribute("action"), body, what: submitter.dataset.removes };
  showToast(`${removal.what}: will be removed in 10 s, or when you leave this page.`, () => (waiting = null), null, () => remove(removal));
  waiting = removal;
});

addEventListener("pagehide", () => waiting && remove(waiting));
