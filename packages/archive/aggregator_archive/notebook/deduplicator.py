"""Duplicate groups of a table, by the rule and the stages of ``aggregator dedupe``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

from aggregator.analysis.simhash import hamming_distance
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import cosine
from aggregator.domain import WeightedTerms
from aggregator.errors import InvalidInput
from aggregator_archive import dates
from aggregator_archive.columns import Columns as ArticleColumns
from aggregator_archive.columns import repeated_ids_problem
from aggregator_archive.encode import Encoding, chunk_metadata, decode_details
from aggregator_archive.executors import open_pool
from aggregator_archive.job import Job, RepresentativeRule, prepare_work_dir
from aggregator_archive.notebook.tables import Columns, article_fields, span_ms
from aggregator_archive.pipeline import ProgressListener, run_pipeline
from aggregator_archive.representatives import choose_representatives
from aggregator_archive.rows import ARTICLE_FIELDS, CONTENT_FIELDS, blocks_of_rows, counted

POLICIES = ("verified", "hamming")
RESULT_COLUMNS = ("group", "verdict", "original", "original_row", "distance", "similarity", "problem")


class Deduplicator:
    """Finds duplicates in a table.

    policy      a rule by name (``POLICIES``) or a ``Policy`` with thresholds of its own
    language    tag of texts that declare none ("en"); empty: detect it
    within      link only articles whose ``published_at`` differ by less; None: of any dates
    keep        article of a group that is its original: "earliest", "longest" or "medoid"
    shingles    "words" as in the service, or "letters", which tolerates OCR errors
    by_headline whether rows without a text can be duplicates, by their headlines alone
    columns     field -> column, for columns with other names than ``ARTICLE_FIELDS``
    models_dir  directory of fitted models; empty: the shipped ones
    processes   worker processes; 0: one per core
    """

    def __init__(
        self,
        *,
        policy: str | Policy = "verified",
        language: str = "",
        within: timedelta | None = None,
        keep: RepresentativeRule = "earliest",
        shingles: str = "words",
        by_headline: bool = False,
        columns: Mapping[str, str] | None = None,
        models_dir: str = "",
        processes: int = 1,
    ) -> None:
        rule = POLICIES[0] if isinstance(policy, Policy) else policy
        chosen = (("policy", rule, POLICIES), ("keep", keep, get_args(RepresentativeRule)))
        for option, given, known in (*chosen, ("shingles", shingles, ("words", "letters"))):
            if given not in known:
                raise InvalidInput(f"{option}: {given!r} is not one of {', '.join(known)}.")
        if not isinstance(processes, int) or processes < 0:
            raise InvalidInput(f"processes: {processes!r} is not 0 (one per core) or a number above.")
        self._columns = dict(columns or {})
        if unknown := [field for field in self._columns if field not in ARTICLE_FIELDS]:
            raise InvalidInput(f"columns: {unknown[0]!r} is not one of {', '.join(ARTICLE_FIELDS)}.")
        self._job = Job(
            inputs=(),
            out_dir=Path(),  # of each run
            encoding=Encoding(models_dir, (), language, shingles),
            policy=policy if isinstance(policy, Policy) else Policy(name=policy),
            within_ms=None if within is None else span_ms("within", within),
            representative=keep,
            by_headline=by_headline,
        )
        self._processes = processes

    def run(self, table: Any) -> Columns:
        """Return columns with one value per row of ``table`` (see ``tables.read_rows``), in its order.

        group       number of the duplicate group, from 0 in order of first row; rows without copies have
                    one of their own; None for unusable rows
        verdict     "new", "duplicate" or "invalid"
        original    id of the row that a duplicate repeats, original_row its position from 0; None otherwise
        distance    Hamming distance to the original in bits, 0 to 64; None otherwise, and if the two are in
                    different languages
        similarity  cosine of the heaviest terms of both, 0 to 1; None otherwise
        problem     why a row is invalid; empty otherwise

        Ids are the column ``id``, else derived from the URL or the text. Dates that cannot be read, repeated
        ids and invalid rows are reported on stderr. Raises InvalidInput as ``read_rows``.
        """
        articles = list(article_fields(table, self._columns, CONTENT_FIELDS, compared=ARTICLE_FIELDS))
        with TemporaryDirectory(prefix="aggregator-") as directory:
            job = replace(self._job, out_dir=Path(directory))
            prepare_work_dir(job, fresh=False)
            with open_pool(self._processes) as pool:
                result = run_pipeline(job, pool, ProgressListener(), blocks_of_rows(articles))
            chunks = [chunk_metadata(chunk) for chunk in result.chunks]
            dates.total(chunk["dates"] for chunk in chunks).report()
            if repeated := repeated_ids_problem(result.columns.repeated_ids(), "original_row"):
                print(repeated, file=sys.stderr)
            problems = {bad["row"] - 1: bad["reason"] for chunk in chunks for bad in chunk["bad"]}
            for row, reason in list(problems.items())[:1]:
                said = f"{counted(len(problems), 'row')} left out, the first: row {row + 1}: {reason}"
                print(said, file=sys.stderr)
            if (bare := int((result.columns.has_text == 0).sum())) and not job.by_headline:
                print(f"rows without a text, none a duplicate: {bare:,} (by_headline)", file=sys.stderr)
            labels, originals = result.labels.tolist(), choose_representatives(result, job).copy_of.tolist()
            return _result_columns(result.columns, labels, originals, len(articles), problems)


def _result_columns(
    columns: ArticleColumns,
    labels: Sequence[int],
    copy_of: Sequence[int],
    count: int,
    problems: Mapping[int, str],
) -> Columns:
    """The columns of ``Deduplicator.run``; ``labels`` and ``copy_of`` count usable rows only."""
    result: Columns = {name: [None] * count for name in RESULT_COLUMNS}
    result["problem"] = [problems.get(at, "") for at in range(count)]
    result["verdict"] = ["invalid"] * count
    positions = [at for at in range(count) if at not in problems]
    numbers: dict[int, int] = {}
    for row, (at, original) in enumerate(zip(positions, copy_of, strict=True)):
        result["group"][at] = numbers.setdefault(labels[row], len(numbers))
        result["verdict"][at] = "new" if original == row else "duplicate"
        if original != row:
            result["original"][at] = columns.id_of(original)
            result["original_row"][at] = positions[original]
            result["distance"][at] = _distance(columns, row, original)
            result["similarity"][at] = round(cosine(_terms(columns, row), _terms(columns, original)), 3)
    return result


def _distance(columns: ArticleColumns, a: int, b: int) -> int | None:
    if columns.space[a] != columns.space[b]:
        return None
    return hamming_distance(int(columns.fingerprint[a]), int(columns.fingerprint[b]))


def _terms(columns: ArticleColumns, row: int) -> WeightedTerms:
    return decode_details(columns.variable("detail", row).tobytes(), int(columns.sample_size[row])).terms
