// The search box of every page: "/" focuses it, Escape leaves it.
function isEditable(node) {
  return node?.closest?.("input, textarea, select, [contenteditable]") != null;
}

export function start() {
  const box = document.getElementById("search-box");
  if (!box) return;
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.defaultPrevented || isEditable(event.target) || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    box.focus();
    box.select();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") box.blur();
  });
}
