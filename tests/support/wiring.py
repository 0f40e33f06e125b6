"""Index, ingest and queries over one store, wired as in production, without events and background work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aggregator.dedup.policy import Policy, PolicyProfiles
from aggregator.domain import AnalyzeMany
from aggregator.events.repository import EventRepository
from aggregator.index import Index
from aggregator.ingest.dual_write import DualWriter
from aggregator.ingest.load_control import LoadControl
from aggregator.ingest.pipeline import ASYNCIO, Execution, continue_at_once
from aggregator.ingest.service import BATCH_ARTICLES, IngestService, OnDelete
from aggregator.queries.explain import Explainer
from aggregator.queries.headline_index import DEFAULT_MAX_ROWS, HeadlineIndex
from aggregator.queries.related import RelatedArticles
from aggregator.queries.relatedness import MIN_PROBABILITY
from aggregator.queries.search import ArticleSearch


@dataclass(frozen=True, slots=True)
class Core:
    """Index, ingest and queries over one store, without events, API keys and background work."""

    index: Index
    ingest: IngestService
    related: RelatedArticles
    explain: Explainer
    search: ArticleSearch


def build_core(
    index: Index,
    analyze_many: AnalyzeMany,
    policy: Policy | PolicyProfiles,
    *,
    clock: Callable[[], int],
    store_texts: bool = False,
    related_min_score: float = MIN_PROBABILITY,
    search_headlines: int = DEFAULT_MAX_ROWS,
    events: EventRepository | None = None,
    on_delete: OnDelete | None = None,
    dual_writer: DualWriter | None = None,
    load_control: LoadControl | None = None,
    before_write: Callable[[], Awaitable[None]] = continue_at_once,
    execution: Execution = ASYNCIO,
    batch_articles: int = BATCH_ARTICLES,
) -> Core:
    """Wire ingest and queries over an index.

    ``events`` are those named in answers and related articles; None: no events. ``related_min_score`` is the
    smallest probability of related articles, ``search_headlines`` the maximum number of headlines in
    memory. The other arguments are those of ``IngestService``.
    """
    profiles = policy if isinstance(policy, PolicyProfiles) else PolicyProfiles(policy)
    related = RelatedArticles(
        index,
        analyze_many,
        clock=clock,
        min_score=related_min_score,
        members_of_event=events.event_article_ids if events is not None else None,
    )
    return Core(
        index=index,
        ingest=IngestService(
            index,
            analyze_many,
            profiles,
            clock=clock,
            store_texts=store_texts,
            event_ids_of=events.event_ids_of if events is not None else None,
            on_delete=on_delete,
            dual_writer=dual_writer,
            load_control=load_control,
            before_write=before_write,
            execution=execution,
            batch_articles=batch_articles,
        ),
        related=related,
        explain=Explainer(index, analyze_many, profiles, related),
        search=ArticleSearch(index, HeadlineIndex(index, search_headlines)),
    )
