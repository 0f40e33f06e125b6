// The event stream (server-sent events): every change becomes an "event-change" of the document.
const RETRY_MS = 5000;
const KINDS = ["fired", "updated", "doubled", "merged", "closed", "action", "reset"];

// onState(isOn); onChange() is called after each change, also when changes were missed ("reset").
export function openStream(url, { onState = () => {}, onChange = () => {} } = {}) {
  const { after } = document.body.dataset;
  const source = new EventSource(url + (after ? `${url.includes("?") ? "&" : "?"}after=${encodeURIComponent(after)}` : ""));
  source.onopen = () => {
    onState(true);
    onChange();
  };
  source.onerror = () => {
    onState(false);
    // EventSource gives up when it gets another status than 200 (a restarting service, a proxy's error page).
    if (source.readyState === EventSource.CLOSED) setTimeout(() => openStream(url, { onState, onChange }), RETRY_MS);
  };
  for (const kind of KINDS) {
    source.addEventListener(kind, (message) => {
      document.body.dataset.after = message.lastEventId;
      if (kind !== "reset") {
        const detail = { kind, event: JSON.parse(message.data) };
        document.dispatchEvent(new CustomEvent("event-change", { detail }));
      }
      onChange();
    });
  }
}
