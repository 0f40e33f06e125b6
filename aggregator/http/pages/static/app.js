// Entry point of all pages: each module starts only where the page has its elements.
import { updateTimes } from "./times.js";
import { refreshWhole, start as startLive } from "./live.js";
import { start as startNewEvents } from "./new_events.js";
import { start as startActions } from "./actions.js";
import { start as startReport } from "./report.js";
import { start as startAlerts } from "./alerts.js";
import { start as startDensity } from "./density.js";
import { start as startShortcuts } from "./shortcuts.js";
import { start as startPassages } from "./passages.js";
import { start as startSearchBox } from "./search_box.js";
import { start as startDays } from "./days.js";
import { start as startTour } from "./tour.js";

startLive(); // first, because it records the markup as the server sent it
updateTimes();
startShortcuts();
startNewEvents(refreshWhole);
startAlerts();
startActions();
startReport();
startDensity();
startPassages();
startSearchBox();
startDays();
startTour();

const errorPage = document.querySelector("[data-reload-seconds]");
if (errorPage) setTimeout(() => location.reload(), Number(errorPage.dataset.reloadSeconds) * 1000);
