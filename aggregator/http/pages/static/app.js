// One entry for all pages: each part starts where the page has what it works on.
import { tellTimes } from "./times.js";
import { start as startLive } from "./live.js";
import { start as startNews } from "./news.js";
import { start as startActions } from "./actions.js";
import { start as startPassages } from "./passages.js";

startLive(); // first: it remembers the page as it was sent
tellTimes();
startNews();
startActions();
startPassages();

const trouble = document.querySelector("[data-retry]");
if (trouble) setTimeout(() => location.reload(), Number(trouble.dataset.retry) * 1000);
