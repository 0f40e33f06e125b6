// Desktop notifications and a sound for new events, chosen in a dialog. Of several open pages one alerts: the one that
// the reader is looking at, which only sounds, otherwise the first.
import { basePath } from "./base_path.js";
import { showToast } from "./toast.js";

const NOTIFY_KEY = "aggregator.notify";
const SOUND_KEY = "aggregator.sound";
const DESK_KEY = "aggregator.alert-desk"; // id of the desk whose events alert, "" for all
const ALERTED_KEY = "aggregator.alerted"; // ids of the last events that a page of this browser alerted
const MAX_ALERTED = 20;
const ALERTING_KINDS = ["fired", "development", "doubled"]; // an event may reach the size of a desk after it fired
const BACKGROUND_DELAY_MS = 500;
const TONES_HZ = [880, 1175];
const TONE_S = 0.16;
const VOLUME = 0.2;
let audio = null;

const canNotify = () => "Notification" in window && Notification.permission === "granted";
const wantsNotification = () => localStorage.getItem(NOTIFY_KEY) === "yes" && canNotify();
const wantsSound = () => localStorage.getItem(SOUND_KEY) === "yes";

// Two sine tones with soft ends. Resolves to whether the browser plays them: not before a first click on the page.
async function playSound() {
  audio ??= new AudioContext();
  await Promise.race([audio.resume(), new Promise((resolve) => setTimeout(resolve, 200))]);
  if (audio.state !== "running") return false;
  TONES_HZ.forEach((frequency, index) => {
    const [tone, gain, from] = [audio.createOscillator(), audio.createGain(), audio.currentTime + index * TONE_S];
    tone.frequency.value = frequency;
    gain.gain.setValueAtTime(0, from);
    gain.gain.linearRampToValueAtTime(VOLUME, from + 0.02);
    gain.gain.linearRampToValueAtTime(0, from + TONE_S);
    tone.connect(gain).connect(audio.destination);
    tone.start(from);
    tone.stop(from + TONE_S);
  });
  return true;
}

function claim(id) {
  const alerted = JSON.parse(localStorage.getItem(ALERTED_KEY) || "[]");
  if (alerted.includes(id)) return false;
  localStorage.setItem(ALERTED_KEY, JSON.stringify([id, ...alerted].slice(0, MAX_ALERTED)));
  return true;
}

async function isOfDesk(event) {
  const desk = localStorage.getItem(DESK_KEY);
  if (!desk) return true;
  const response = await fetch(`${basePath}/v1/events?limit=50&sort=novelty&watch=${encodeURIComponent(desk)}`);
  if (response.ok) return (await response.json()).events.some(({ id }) => id === event.id);
  if (response.status !== 404) return false;
  localStorage.removeItem(DESK_KEY); // the desk was deleted
  return true;
}

async function showDesks() {
  const select = document.getElementById("alert-desk");
  const response = await fetch(`${basePath}/v1/desks`);
  if (!response.ok) return;
  const { desks } = await response.json();
  select.replaceChildren(new Option("all events", ""), ...desks.map(({ id, name }) => new Option(name, id)));
  select.value = localStorage.getItem(DESK_KEY) || "";
  if (select.selectedIndex < 0) select.value = "";
}

async function alertTo(event) {
  const isLooking = document.hasFocus();
  if (!isLooking) await new Promise((resolve) => setTimeout(resolve, BACKGROUND_DELAY_MS));
  if (!(wantsSound() || wantsNotification()) || !(await isOfDesk(event)) || !claim(event.id)) return;
  if (wantsNotification() && !isLooking) notify(event);
  if (wantsSound() && !(await playSound())) showToast("Your browser plays the alert sound only after a click on this page.");
}

function notify(event) {
  const sources = `${event.sources.length} ${event.sources.length === 1 ? "source" : "sources"}`;
  const notification = new Notification(event.current_title, { body: `${event.size} items from ${sources}`, tag: event.id });
  notification.onclick = () => {
    window.focus();
    location.href = `${basePath}/events/${encodeURIComponent(event.id)}`;
  };
}

async function setNotify({ target }) {
  const problem = document.getElementById("alert-problem");
  problem.textContent = "";
  localStorage.setItem(NOTIFY_KEY, target.checked ? "yes" : "no");
  if (!target.checked) return;
  if ("Notification" in window && (await Notification.requestPermission()) === "granted") return;
  target.checked = false;
  localStorage.setItem(NOTIFY_KEY, "no");
  problem.textContent = window.isSecureContext
    ? "Your browser blocks notifications of this site; allow them in its site settings."
    : "Browsers allow notifications only for addresses that begin with https.";
}

export function start() {
  const button = document.getElementById("alerts");
  if (!button) return;
  const sound = document.getElementById("alert-sound");
  button.hidden = false;
  button.addEventListener("click", () => {
    document.getElementById("alert-notify").checked = wantsNotification();
    sound.checked = wantsSound();
    showDesks();
    document.getElementById("alerts-dialog").showModal();
  });
  document.getElementById("alert-notify").addEventListener("change", setNotify);
  sound.addEventListener("change", () => {
    localStorage.setItem(SOUND_KEY, sound.checked ? "yes" : "no");
    if (sound.checked) playSound();
  });
  document.getElementById("alert-desk").addEventListener("change", ({ target }) => localStorage.setItem(DESK_KEY, target.value));
  document.getElementById("alert-test").addEventListener("click", playSound);
  document.addEventListener("event-change", ({ detail: { kind, event } }) => {
    if (kind === "fired" || (localStorage.getItem(DESK_KEY) && ALERTING_KINDS.includes(kind))) alertTo(event);
  });
}
