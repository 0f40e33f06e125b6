// Comparison page: pointing at a shared passage highlights it in both texts.
export function start() {
  const sides = document.querySelector(".sides");
  if (!sides) return;
  const highlight = (event) => {
    const passage = event.type === "pointerout" ? null : event.target.closest?.("mark")?.dataset.passage;
    for (const mark of sides.querySelectorAll("mark")) {
      mark.classList.toggle("highlighted", passage !== null && mark.dataset.passage === passage);
    }
  };
  sides.addEventListener("pointerover", highlight);
  sides.addEventListener("pointerout", highlight);
}
