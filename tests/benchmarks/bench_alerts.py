"""Share of routine among the alerts of a recording, by a person's verdicts.

    aggregator replay FILE > EVENTS; python -m tests.benchmarks.bench_alerts EVENTS [--list]

Draws ``DRAWN`` of the events (seed ``SEED``) and counts the verdicts of ``alert_judgments.json``, which holds
the id of each judged event (it depends on the event's first article alone), and no text. ``--list`` prints
the events that were drawn with their verdicts, for judging. Verdicts:

    news      something that happened: politics, disasters, crimes, deals, companies
    market    a move of markets, or a decision of a central bank
    figures   a statistic of the month and what markets make of it
    routine   expected in advance and repeated: results, sales of the month, notices, schedules, templates
    none      items without a common subject
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from pathlib import Path

from aggregator.offline.jsonl import read_rows

JUDGMENTS = Path(__file__).with_name("alert_judgments.json")
DRAWN = 100
SEED = 18


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("events", help="output of `aggregator replay` or of `bench events --alerts`")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    events = sorted(read_rows([options.events]), key=lambda event: str(event["id"]))
    drawn = random.Random(SEED).sample(events, min(DRAWN, len(events)))
    verdicts: dict[str, str] = json.loads(JUDGMENTS.read_text(encoding="utf-8"))
    counts = Counter(verdicts.get(str(event["id"]), "not judged") for event in drawn)
    if options.list:
        for event in sorted(drawn, key=lambda event: str(event["detected_at"])):
            verdict = verdicts.get(str(event["id"]), "")
            terms = " ".join(event["terms"][:4])
            print(
                f"{event['id']}\t{verdict}\t{event['detected_at']}\t{event['size']}\t{terms}\t{event['title']}"
            )
    print(f"{len(events)} events, {len(drawn)} drawn: {dict(counts.most_common())}")


if __name__ == "__main__":
    main()
