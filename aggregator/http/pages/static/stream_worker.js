// Shared worker: one event stream per filter for all pages of a browser. With HTTP/1.1 a browser opens six connections
// to a service; a stream of each page would leave none for the seventh page.
import { follow } from "./event_source.js";

// Pages with further filters wait for a stream, and refresh at their interval meanwhile.
const MAX_STREAMS = 3;
const streams = new Map(); // url -> { pages, after, state, close }

function openWaiting() {
  for (const [url, stream] of streams) {
    const open = [...streams.values()].filter(({ close }) => close).length;
    if (stream.close || open >= MAX_STREAMS) continue;
    stream.close = follow(url, stream.after, (message) => {
      stream.state = message.state ?? stream.state;
      for (const page of stream.pages) page.postMessage(message);
    });
  }
}

function join(page, url, after) {
  const stream = streams.get(url) ?? { pages: new Set(), after, state: "", close: null };
  streams.set(url, stream);
  stream.pages.add(page);
  openWaiting();
  const state = stream.close ? stream.state : "waiting";
  if (state) page.postMessage({ state });
}

function leave(page) {
  for (const [url, stream] of streams) {
    if (!stream.pages.delete(page) || stream.pages.size) continue;
    stream.close?.();
    streams.delete(url);
  }
  openWaiting();
}

self.onconnect = ({ ports: [page] }) => {
  page.onmessage = ({ data: { url, after } }) => (url ? join(page, url, after) : leave(page));
};
