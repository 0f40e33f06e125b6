// "Try it" on the API page: sends the request of a form and shows the answer. The access key is kept in the
// field of this page only: it is neither stored nor put into an address.

import { basePath } from "./base_path.js";

const MAX_SHOWN_CHARS = 20_000;
const key = document.querySelector("#try-key");
document.querySelector("#api-origin").textContent = location.origin + basePath;

function address(form) {
  const query = new URLSearchParams();
  let path = form.dataset.path;
  for (const field of form.querySelectorAll("[data-in]")) {
    const value = field.value.trim();
    if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(value));
    else if (field.dataset.in === "query" && value) query.set(field.name, value);
  }
  return query.size ? `${path}?${query}` : path;
}

function headers(form) {
  const sent = new Headers();
  if (key.value) sent.set("Authorization", `Bearer ${key.value}`);
  if (form.elements.body) sent.set("Content-Type", form.dataset.media);
  for (const field of form.querySelectorAll('[data-in="header"]')) {
    if (field.value.trim()) sent.set(field.name, field.value.trim());
  }
  return sent;
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

async function send(form) {
  const output = form.querySelector("output");
  const button = form.querySelector("button");
  button.disabled = true;
  output.textContent = "Sending …";
  try {
    const response = await fetch(address(form), {
      method: form.dataset.method,
      headers: headers(form),
      body: form.elements.body?.value,
      signal: AbortSignal.timeout(30_000),
    });
    const text = pretty(await response.text());
    const shown = text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}\n…` : text;
    output.textContent = `${response.status} ${response.statusText}\n${shown}`;
  } catch (error) {
    output.textContent = `The request failed: ${error.message}`;
  } finally {
    button.disabled = false;
  }
}

for (const part of document.querySelectorAll(".try[hidden]")) part.hidden = false;
for (const form of document.querySelectorAll("form.try")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
}
// A link to an operation or schema opens it.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
}
addEventListener("hashchange", openTarget);
openTarget();
