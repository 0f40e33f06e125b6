// The event stream of a page: every change becomes an "event-change" of the document. All pages of a browser share it
// where shared workers exist (not on Android phones).
import { follow } from "./event_source.js";

// onState("on" | "off" | "waiting"); onChange() is called after each change, also when changes were missed ("reset").
export function openStream(url, { onState = () => {}, onChange = () => {} } = {}) {
  const { body } = document;
  const receive = ({ state, kind, data, id }) => {
    if (state) {
      body.dataset.streamState = state;
      onState(state);
      if (state === "on") onChange();
      return;
    }
    body.dataset.after = id;
    if (kind !== "reset") {
      const detail = { kind, event: JSON.parse(data), position: id };
      document.dispatchEvent(new CustomEvent("event-change", { detail }));
    }
    onChange();
  };
  if ("SharedWorker" in window) share(url, receive);
  else follow(url, body.dataset.after, receive);
}

function share(url, receive) {
  const worker = new SharedWorker("/static/stream_worker.js", { type: "module", name: "stream" });
  const join = () => worker.port.postMessage({ url, after: document.body.dataset.after });
  worker.onerror = () => follow(url, document.body.dataset.after, receive); // the worker could not be loaded
  worker.port.onmessage = ({ data }) => receive(data);
  join();
  addEventListener("pagehide", () => worker.port.postMessage({}));
  addEventListener("pageshow", ({ persisted }) => persisted && join());
}
