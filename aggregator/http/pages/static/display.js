// Density of rows, set before the page is drawn: the reader's choice, or compact on a phone.
document.documentElement.dataset.density =
  localStorage.getItem("aggregator.density") || (matchMedia("(max-width: 48rem)").matches ? "compact" : "comfortable");
