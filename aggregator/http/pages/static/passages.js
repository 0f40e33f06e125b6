// The same passage in both texts lights up together.
export function start() {
  const sides = document.querySelector(".sides");
  if (!sides) return;
  const light = (event) => {
    const passage = event.type === "pointerout" ? null : event.target.closest?.("mark")?.dataset.passage;
    for (const mark of sides.querySelectorAll("mark")) mark.classList.toggle("hot", passage !== null && mark.dataset.passage === passage);
  };
  sides.addEventListener("pointerover", light);
  sides.addEventListener("pointerout", light);
}
