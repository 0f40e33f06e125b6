// One connection to the event stream (server-sent events), used by a page or by the worker of all pages.
const RETRY_MS = 5000;
const KINDS = ["fired", "updated", "development", "doubled", "merged", "closed", "action", "reset"];

// Calls receive({ state: "on" | "off" }) and receive({ kind, data, id }), with data as JSON text. Returns a function
// that closes the connection.
export function follow(url, after, receive) {
  let source = null;
  let timer = 0;
  let position = after;
  const open = () => {
    const resume = position ? `${url.includes("?") ? "&" : "?"}after=${encodeURIComponent(position)}` : "";
    source = new EventSource(url + resume);
    source.onopen = () => receive({ state: "on" });
    source.onerror = () => {
      receive({ state: "off" });
      // EventSource gives up when it gets another status than 200 (a restarting service, a proxy's error page).
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, RETRY_MS);
    };
    for (const kind of KINDS) {
      source.addEventListener(kind, ({ data, lastEventId }) => {
        position = lastEventId;
        receive({ kind, data, id: lastEventId });
      });
    }
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}
