"""Decision on one pending article: its verdict, and the transaction that stores it.

An id that is not bound in the article's space is inserted. The same text under a known id is a repeat, which
changes at most the metadata; another text or source is an update. A text that has next to nothing in common
with the former one (``identity.py``) is inserted in its place. Decisions are made on a snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from random import getrandbits

from aggregator.analysis.source import as_sent
from aggregator.dedup.copy_rule import is_same_outlet
from aggregator.dedup.grouping import unite
from aggregator.dedup.other_news import is_same_text
from aggregator.dedup.verdict import Candidate, compare_with_readers_versions, decide, related_candidates
from aggregator.domain import (
    NUMBER_RANDOM_BITS,
    Answer,
    Article,
    ArticleRecord,
    Match,
    Outcome,
    ReplacedArticle,
    arrival_ms_of,
    article_number_at,
    build_record,
    copy_metadata,
    date_problem,
)
from aggregator.errors import Expired, ImplausibleClock, NotFound, TakenDown
from aggregator.index import Index, Probe, Snapshot, keys
from aggregator.index.bindings import BindingSnapshot, binding_in_space, bindings_under, source_hash
from aggregator.index.candidates import build_candidates, rank
from aggregator.index.lookup import LookupResult
from aggregator.ingest.commit import CommitPlan, PendingArticle
from aggregator.ingest.dual_write import DualWriter
from aggregator.ingest.identity import fills_stub, has_common_text, is_other_source
from aggregator.store.base import Transaction
from aggregator.time_units import HOUR_MS, format_rfc3339

# Numbers of one millisecond are up to 2**10 apart: about 4,000 fit before they run into the next one.
STEP_RANDOM_BITS = 10
MAX_STEP_BACK_MS = HOUR_MS


class ArticleNumberGenerator:
    """Generates article numbers; one per process."""

    def __init__(self) -> None:
        self._last = 0

    def next(self, now_ms: int) -> int:
        """A new number for an arrival at ``now_ms``, larger than all before unless the clock leapt back."""
        fresh = article_number_at(now_ms, getrandbits(NUMBER_RANDOM_BITS - 1))
        if arrival_ms_of(self._last) - now_ms > MAX_STEP_BACK_MS:
            self._last = 0
        self._last = max(fresh, self._last + 1 + getrandbits(STEP_RANDOM_BITS))
        return self._last


MAX_RELATED = 10


@dataclass(slots=True)
class LookedUpArticle:
    """What the index returned for one article."""

    probe: Probe
    matches: LookupResult
    candidate_numbers: list[int]


@dataclass(slots=True)
class _Decision:
    """One article with all that its decision depends on; ``bindings`` of its id are newest first."""

    pending: PendingArticle
    lookup: LookedUpArticle
    snapshot: Snapshot
    now_ms: int
    dry_run: bool
    changed_buckets: set[bytes]
    candidates: list[Candidate]
    bindings: list[BindingSnapshot]
    newest_number: int  # that of ``bindings``, or 0
    current: BindingSnapshot | None  # the binding in the article's space, also in ``bindings``


class Decider:
    """Decides pending articles, each by its policy. One per process, since it assigns article numbers."""

    def __init__(self, index: Index, dual_writer: DualWriter | None) -> None:
        self._index = index
        self._dual_writer = dual_writer
        self._number_generator = ArticleNumberGenerator()

    async def refusal(self, pending: PendingArticle, probe: Probe, snapshot: Snapshot) -> TakenDown | None:
        """The error if the text was taken down."""
        if probe.id not in snapshot.taken_down:
            return None
        if pending.record_written:  # by an earlier attempt, before it was taken down
            await self._index.records.delete({pending.number: pending.analysis.space})
        return TakenDown(f"The text of the article {probe.id[:200]!r} was taken down; it is not stored.")

    async def decide(
        self, pending: PendingArticle, lookup: LookedUpArticle, snapshot: Snapshot, now_ms: int, dry_run: bool
    ) -> CommitPlan:
        """Plan the commit of one article; a repeat stores newer metadata immediately."""
        probe = lookup.probe
        changed_buckets = snapshot.changed_buckets(probe.id) if snapshot.writers else set()
        if changed_buckets:  # an earlier article of this batch shares a bucket with it
            matches = self._index.lookup.extend_result(snapshot, probe, lookup.matches, changed_buckets)
            if matches is not lookup.matches:
                lookup.matches, lookup.candidate_numbers = matches, matches.ranked_numbers
        bindings = bindings_under(snapshot, probe.binding_key)
        case = _Decision(
            pending=pending,
            lookup=lookup,
            snapshot=snapshot,
            now_ms=now_ms,
            dry_run=dry_run,
            changed_buckets=changed_buckets,
            candidates=build_candidates(
                snapshot, probe, lookup.candidate_numbers, pending.profile.policy, pending.article, now_ms
            ),
            bindings=bindings,
            newest_number=bindings[0].binding.number if bindings else 0,
            current=next((b for b in bindings if b.space == pending.analysis.space), None),
        )
        if case.current is None:  # a new id, or one that changed its language: then it is another article
            return await self._plan_insert(case)
        if case.current is bindings[0] and _is_repeat(case, case.current):
            return await self._plan_repeat(case, case.current)
        known = case.current.binding.outcome
        if _former_article(case, is_copy=True) is not None or not (known.keep and known.text_is_article):
            return await self._plan_insert(case, case.current)  # what nobody has is decided by its new text
        return await self._plan_update(case, case.current, known)

    async def _plan_insert(self, case: _Decision, replaced: BindingSnapshot | None = None) -> CommitPlan:
        """A new article, in the place of ``replaced`` if its id is used again."""
        analysis, policy = case.pending.analysis, case.pending.profile.policy
        outcome = decide(analysis, case.candidates, policy)
        if outcome.match is not None:
            outcome = await self._compare_with_readers_versions(case, outcome, outcome.match)
        id_ = case.pending.article.id
        old = replaced.binding if replaced is not None else None
        if replaced and old and outcome.group(0) == old.group and outcome.keep <= old.outcome.keep:
            kept = old.outcome if old.outcome.keep else outcome  # unlike that version, but like its copies
            return await self._plan_update(case, replaced, kept)
        former = _former_article(case, is_copy=outcome.match is not None)
        if replaced and old and former is None and old.outcome.keep and old.outcome.text_is_article:
            return await self._plan_update(case, replaced, old.outcome)  # a stub with a text of its own
        led_group = next((c.canonical[1] for c in case.candidates if c.canonical[0] == id_ and not old), 0)
        if led_group and outcome.match is not None:
            # It expired before its copies and returns: it is their canonical article again.
            outcome = Outcome("new", distance=outcome.distance)
        outcome = outcome if former is None else replace(outcome, reused_id=True)
        heads: list[ArticleRecord] = []
        if replaced is None:
            outcome, heads = unite(analysis, case.candidates, outcome, policy)
        record = await self._assign_number(case, led_group)
        snapshot, probe = case.snapshot, case.lookup.probe
        checks = self._index.lookup.commit_checks(
            snapshot, probe, case.changed_buckets, case.lookup.candidate_numbers, outcome.match
        )
        transaction = self._index.transactions(snapshot.stacks[probe.space]).insert(
            record, outcome, checks, snapshot.unchanged_check(probe.space, keys.VERSION), snapshot.values
        )
        removed = list[BindingSnapshot]()
        if replaced is not None:
            removal, removed = await self._index.articles.removal_transaction(snapshot, replaced, undo=True)
            # One transaction advances the version once.
            transaction = Transaction(
                removal.checks + transaction.checks, removal.writes[:-1] + transaction.writes
            )
        plan = self._build_plan(case, outcome, record, transaction, removed, former)
        if not heads:
            return plan
        checks, writes, joining = await self._index.articles.join(snapshot, heads)
        transaction = Transaction((*transaction.checks, *checks), (*writes, *transaction.writes))
        return replace(plan, transaction=transaction, joining=joining)

    async def _compare_with_readers_versions(
        self, case: _Decision, outcome: Outcome, match: Match
    ) -> Outcome:
        """The outcome of a duplicate with what it adds to the kept articles of its group."""
        group = [c for c in case.candidates if c.canonical[1] == match.canonical_first]
        members = [c for c in group if c.kept]
        canonical = next((c.record for c in members if c.record.id == match.canonical_id), None)
        if canonical is None:  # not a candidate: of this batch, or stored
            key = keys.binding(match.canonical_id)
            known = binding_in_space(case.snapshot, case.pending.analysis.space, key)
            canonical = case.snapshot.record(known.binding.number) if known is not None else None
        if canonical is None:
            try:
                canonical = (await self._index.articles.get(match.canonical_id)).record
            except (NotFound, Expired):  # then the match stands for it
                canonical = next(c.record for c in case.candidates if c.record.number == match.number)
        members.sort(key=lambda c: -c.evidence.overlap.containment)
        same_outlet = is_same_outlet(case.pending.article.source, canonical.source)
        return compare_with_readers_versions(
            outcome,
            case.pending.analysis,
            canonical,
            [c.record for c in members],
            case.pending.profile.policy,
            same_outlet,
            is_revision=same_outlet or any(c.evidence.same_outlet for c in group),
        )

    async def _plan_repeat(self, case: _Decision, current: BindingSnapshot) -> CommitPlan:
        pending, number = case.pending, current.binding.number
        record = case.snapshot.record(number)
        if record is not None:
            same_source = not is_other_source(pending.article, record)
            updated = merge_metadata(record, as_sent(pending.article)) if same_source else record
            if not case.dry_run and metadata_of(updated) != metadata_of(record):
                await self._index.articles.update_metadata(current, updated)
                if self._dual_writer is not None:
                    await self._dual_writer.update_metadata(updated)
            record = _with_problems(updated, pending)
        if pending.record_written and pending.number != number:
            await self._index.records.delete({pending.number: pending.analysis.space})
        return self._build_plan(case, current.binding.outcome, record, None)

    async def _plan_update(self, case: _Decision, current: BindingSnapshot, outcome: Outcome) -> CommitPlan:
        """New content or source under a known id, in its group: the old version leaves the index."""
        record = await self._assign_number(case, current.binding.first_version)
        previous = case.snapshot.record(current.binding.number)
        if previous is not None and previous.text_hash == record.text_hash:
            record = merge_metadata(copy_metadata(previous, record), as_sent(case.pending.article))
            record = _with_problems(record, case.pending)
        elif previous is not None and not as_sent(case.pending.article).source:
            record = replace(record, source=previous.source or record.source)
        if case.pending.record_written:  # by an earlier attempt, which read another version
            await self._index.records.replace(record)
        transaction = await self._index.articles.update_transaction(case.snapshot, current, record, outcome)
        return self._build_plan(case, outcome, record, transaction)

    async def _assign_number(self, case: _Decision, first_version: int) -> ArticleRecord:
        """The article's record, under a number above all earlier ones of its id. Raises ImplausibleClock.

        ``first_version`` is 0 for a first version. A record of an earlier attempt is kept unless it no longer
        fits.
        """
        pending, newest = case.pending, case.newest_number
        if pending.record_written and (
            pending.number <= newest or pending.first_version != (first_version or pending.number)
        ):
            await self._index.records.delete({pending.number: pending.analysis.space})
            pending.number, pending.record_written = 0, False
        if pending.number <= newest:  # the clock of another process may be ahead
            pending.number = self._number_generator.next(max(case.now_ms, arrival_ms_of(newest) + 1))
        if pending.number < case.snapshot.stacks[case.lookup.probe.space].floor:
            raise ImplausibleClock(
                "The article cannot be stored: by the clock of this machine it arrives at "
                f"{format_rfc3339(case.now_ms)}, and what arrived then has expired; see `aggregator doctor`."
            )
        pending.first_version = first_version or pending.number
        return build_record(pending.article, pending.analysis, pending.number, pending.first_version)

    def _build_plan(
        self,
        case: _Decision,
        outcome: Outcome,
        record: ArticleRecord | None,
        transaction: Transaction | None,
        removed: Sequence[BindingSnapshot] = (),
        former: ReplacedArticle | None = None,
    ) -> CommitPlan:
        analysis = case.pending.analysis
        own_group = outcome.group(record.first_version if record is not None else 0) or None
        near = related_candidates(analysis, case.candidates, outcome, case.pending.profile.policy)
        groups = dict.fromkeys(c.canonical[1] for c in near)
        shown = [c for c in case.candidates if c.kept and c.canonical[1] in groups]  # callers lack the others
        # A group that begins with this version can be in no event yet.
        if own_group is not None and not (transaction and record and own_group == record.number):
            groups = {own_group: None, **groups}
        others = () if outcome.text_is_article else case.candidates
        since_ms = case.pending.article.first_sent_ms or inf  # what the request itself stored is not older
        is_first = all(arrival_ms_of(known.binding.first_version) >= since_ms for known in case.bindings)
        answer = Answer(
            id=case.pending.article.id,
            outcome=outcome,
            space=analysis.space,
            fingerprint=analysis.fingerprint,
            short=analysis.short,
            related=rank(shown, exclude_group=own_group, limit=MAX_RELATED),
            stored=transaction is not None and not case.dry_run,
            created=not case.dry_run and (former is not None or bool(removed) or is_first),
            problems=(record or analysis).problems | outcome.problems,
            profile=case.pending.profile.name,
            stored_as=case.pending.article.id if case.pending.posted_id else None,
            replaces=former,
        )
        return CommitPlan(
            pending=case.pending,
            answer=answer,
            transaction=transaction,
            record=record,
            latest_number=record.number if transaction and record else case.newest_number,
            superseded_number=case.current.binding.number if transaction and case.current else None,
            removed=removed,
            older_versions=tuple(b for b in case.bindings if b is not case.current),
            duplicate_groups=tuple(groups),
            notices=[c for c in others if is_same_text(analysis, c.record)],
        )


def _former_article(case: _Decision, *, is_copy: bool) -> ReplacedArticle | None:
    """What the id stood for, if next to nothing of it is left, or it was a stub and becomes a copy."""
    stored, later = case.snapshot.record(case.newest_number) if case.bindings else None, case.pending.analysis
    if stored is None or (has_common_text(stored, later) and not (is_copy and fills_stub(stored, later))):
        return None
    verdict = case.bindings[0].binding.outcome.verdict
    return ReplacedArticle(stored.title, stored.source, stored.published_at_ms, verdict)


def _is_repeat(case: _Decision, current: BindingSnapshot) -> bool:
    """The same text and headline, unless its source becomes known; another source's changes nothing."""
    sent, record = as_sent(case.pending.article), case.snapshot.record(current.binding.number)
    is_titled = record is not None and sent.title not in ("", record.title)
    is_plain = not is_titled and (not sent.source or source_hash(sent.source) == current.binding.source)
    is_same = current.binding.text_hash == case.pending.analysis.text_hash
    return is_same and (is_plain or (record is not None and is_other_source(case.pending.article, record)))


def _with_problems(record: ArticleRecord, sent: PendingArticle) -> ArticleRecord:
    """The record with the problems of the date that is stored, whichever request stated it."""
    dated = replace(sent.article, published_at_ms=record.published_at_ms)
    found = date_problem(dated, arrival_ms_of(record.first_version))
    return replace(record, problems=sent.analysis.problems | found)


def merge_metadata(record: ArticleRecord, article: Article) -> ArticleRecord:
    """The record with the article's title, url, source and date; empty ones keep the stored value."""
    published_ms = article.published_at_ms
    return replace(
        record,
        title=article.title or record.title,
        url=article.url or record.url,
        source=article.source or record.source,
        published_at_ms=record.published_at_ms if published_ms is None else published_ms,
    )


def metadata_of(record: ArticleRecord) -> tuple[str, str, str, int | None]:
    """The fields that ``merge_metadata`` may change."""
    return record.title, record.url, record.source, record.published_at_ms
