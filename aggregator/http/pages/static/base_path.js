// Path below which a proxy serves the pages ("" for a host of their own); addresses that scripts make begin with it.

export const basePath = document.body.dataset.basePath ?? "";
