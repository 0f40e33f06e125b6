"""Comparison of methods as one HTML page: a plot per noise level, the table, published results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from aggregator_archive import plots
from aggregator_archive.report import style_sheet
from aggregator_lab.evaluation.methods import MethodResult
from aggregator_lab.evaluation.methods_table import (
    PUBLISHED_ORIGIN,
    PUBLISHED_RUNTIMES,
    PUBLISHED_SCORES,
    best_per_method,
    is_neural,
    methods_not_run,
    ngram_lines,
)

COLUMN_HEADINGS = (
    "level", "method", "clustering", "B-cubed F1", "ARI", "ARI as labelled", "pair P", "pair R", "pair F1",
    "mean group", "all clusters, B-cubed F1", "CPU seconds", "MB",
)  # fmt: skip

# Wide tables scroll on their own, also by keyboard; the page does not.
_SCROLLED_TABLE = (
    '<div class="scroll" role="region" aria-label="{label}" tabindex="0"><table class="results">'
)


def render_page(
    rows: Sequence[MethodResult], shares_without_ngram: Mapping[str, float], data: str = ""
) -> str:
    """Return the complete HTML document; ``data``: what was measured, the rest as of ``format_table``."""
    return "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<title>Methods side by side</title>",
            style_sheet(),
            "</head><body><h1>Methods side by side</h1>",
            "<p><code>aggregator evaluate methods FILE --out PAGE</code>. Thresholds are tuned on even ",
            "clusters and scored on odd ones, and the reverse; the table shows the means of both. ",
            "Overlapping labels are merged, except for “ARI as labelled”. The plots show each method with ",
            "its best clustering. “All clusters”: by the threshold of the even ones.</p>",
            f"<p>{escape(data)}</p>",
            *(_level_plot(level, ranked) for level, ranked in best_per_method(rows).items()),
            _SCROLLED_TABLE.format(label="Results"),
            "<tr>",
            *(f"<th>{head}</th>" for head in COLUMN_HEADINGS),
            "</tr>",
            *(_table_row(row) for row in rows),
            "</table></div>",
            *(
                f"<p>{escape(line)}</p>"
                for line in (*methods_not_run(rows), *ngram_lines(shares_without_ngram))
            ),
            "<h2>Published, of other systems</h2><p>Not measured here; on the data named. ",
            f"{PUBLISHED_ORIGIN}</p>",
            _SCROLLED_TABLE.format(label="Published results"),
            *(
                f"<tr><td>{escape(data)}</td><td>{escape(system)}</td><td>{measure}</td>"
                f"<td>{value:.3f}</td></tr>"
                for data, measure, system, value in PUBLISHED_SCORES
            ),
            "</table></div>",
            _SCROLLED_TABLE.format(label="Published run times"),
            *(
                f"<tr><td>{escape(system)}</td><td>{articles:,}</td><td>{time}</td></tr>"
                for system, articles, time in PUBLISHED_RUNTIMES
            ),
            "</table></div></body></html>",
        )
    )


def _level_plot(level: str, ranked: Sequence[MethodResult]) -> str:
    """Bar chart of the B-cubed F1 of each method with its best clustering."""
    names = [f"{row.method}{' *' if is_neural(row) else ''}, {row.clustering}" for row in ranked]
    return plots.ranked_bar_chart(f"B-cubed F1, {level} (* neural)", names, [r.b_cubed_f1 for r in ranked])


def _table_row(row: MethodResult) -> str:
    shares = (
        row.b_cubed_f1, row.adjusted_rand, row.adjusted_rand_as_labelled, row.pair_precision, row.pair_recall,
        row.pair_f1,
    )  # fmt: skip
    cells = [f"{share:.3f}" for share in shares]
    cells += [f"{row.mean_group:.1f}", f"{row.whole_b_cubed_f1:.3f}"]
    cells += [f"{row.seconds:.1f}", f"{row.memory_mb:.0f}"]
    columns = [row.level, escape(row.method), row.clustering, *cells]
    return "<tr>" + "".join(f"<td>{column}</td>" for column in columns) + "</tr>"
