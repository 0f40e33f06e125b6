// A short message at the lower edge, optionally with an Undo button. Ctrl+Z is left to the browser; "z" undoes too.
const SHORT_MS = 6000;
const UNDO_MS = 10000;
let timer = 0;
let pendingUndo = null;
let pendingKeep = null;

function hide() {
  const keep = pendingKeep;
  pendingUndo = pendingKeep = null;
  document.getElementById("toast").replaceChildren();
  keep?.();
}

// undo: called at most once, if the reader chooses to; keep: called if not; url: of what was made; offer: another
// action, { label, act }.
export function showToast(text, undo = null, url = null, keep = null, offer = null) {
  hide();
  const toast = document.getElementById("toast");
  const message = document.createElement("span");
  message.textContent = text;
  message.dir = "auto";
  toast.replaceChildren(message);
  if (url) {
    const link = document.createElement("a");
    link.href = url;
    link.textContent = "Open it";
    toast.append(link);
  }
  pendingUndo = undo;
  pendingKeep = keep;
  if (undo) addButton("Undo", undoLast);
  if (offer) addButton(offer.label, () => (hide(), offer.act()));
  clearTimeout(timer);
  timer = setTimeout(hideUnlessInUse, undo || offer ? UNDO_MS : SHORT_MS);
}

function addButton(label, act) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", act);
  document.getElementById("toast").append(button);
}

// A toast that the reader points at or has focused stays.
function hideUnlessInUse() {
  const toast = document.getElementById("toast");
  if (toast.matches(":hover, :focus-within")) timer = setTimeout(hideUnlessInUse, SHORT_MS);
  else hide();
}

export function undoLast() {
  const undo = pendingUndo;
  if (undo) pendingKeep = null;
  hide();
  undo?.();
}
