"""In which way two articles are related, and because of which words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import starmap

from aggregator.analysis.term_profile import subject_terms
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.morphology import stemmer
from aggregator.domain import Analysis, ArticleRecord, RelatedItem
from aggregator.queries.relatedness import NO_RARITY, RelatedEvidence
from aggregator_client.wire import RelatedKindName, RelatednessOut, SharedWord

MAX_SHARED = 5
STORY_DAYS = 3.0  # older by more days an article tells how a subject began, not the same news
# Cosine of the stored terms from which 0.8 (ecbplus_dev) to 0.96 (uci_stories_dev) of pairs are of one story.
SAME_STORY, SAME_STORY_OF_FEW = 0.4, 0.5
NAME_TERMS, FEW_TERMS = 2, 5  # so many or fewer in common: a name, no subject; a subject of many stories
_PUNCTUATION = "\"'.,:;!?()[]«»„“”‘’–—"
_SENTENCES: Mapping[str, str] = {
    "": "No common subject is likely",
    "part_of": "One contains the other",
    "same_event": "They belong to one event",
    "same_story": "They tell one story",
    "background": "The earlier one is background of the later one",
    "same_person_or_place": "They share a person, place or topic; whether it is the same news is not certain",
}


def kind_of(evidence: RelatedEvidence, days_older: float) -> RelatedKindName:
    """The kind of a related article that is ``days_older`` than the subject."""
    needed = SAME_STORY if evidence.shared > FEW_TERMS else SAME_STORY_OF_FEW
    if evidence.shared <= NAME_TERMS or (days_older <= STORY_DAYS and evidence.main < needed):
        return "same_person_or_place"
    return "background" if days_older > STORY_DAYS else "same_story"


def shared_words(
    a: Analysis | ArticleRecord, b: ArticleRecord, rarity: Mapping[str, float] = NO_RARITY
) -> tuple[tuple[str, float], ...]:
    """Words of both in a headline (stems if it has none), heaviest first, and the share, 0..1, of each."""
    weights, others = subject_terms(a), subject_terms(b).items()
    shares = {t: weights[t] * weight * rarity.get(t, 1.0) for t, weight in others if t in weights}
    total, spelled = sum(shares.values()), _words(b.title, b.lang) | _words(a.title, a.lang)
    words = [t for t in shares if shares[t] and (t in spelled or not stemmer(b.lang))] or shares
    heaviest = sorted(words, key=lambda term: -shares[term])[:MAX_SHARED]
    return tuple((spelled.get(t, t), round(shares[t] / total, 2)) for t in heaviest if shares[t])


@lru_cache(maxsize=4096)
def _words(title: str, lang: str) -> dict[str, str]:
    """The words of a headline that have one term each, by this term."""
    pairs = [(tokenizer.tokenize(word, lang), word.strip(_PUNCTUATION)) for word in title.split()]
    return {terms[0]: word for terms, word in pairs if len(terms) == 1}


def relatedness_out(item: RelatedItem, why_not: str) -> RelatednessOut:
    """The relation in two short sentences and in fields; ``why_not``: reason for not listing it, or ""."""
    names, hours = ", ".join(word for word, _ in item.shared) or "nothing", item.hours_apart
    apart = "" if hours is None else f" ({hours:.0f} h" if hours < 48 else f" ({hours / 24:.0f} days"
    apart += " apart)" if apart else ""
    text, kind = f"Probability of one subject {item.score:.3f}", item.kind
    if why_not:
        text += f", {why_not}: not listed. Common words: {names}{apart}."
    else:
        text += ", by wording alone" if kind == "same_event" else ""
        text += f": both are about {names}. {_SENTENCES[item.kind]}{apart}."
    words = list(starmap(SharedWord, item.shared))
    return RelatednessOut(text, not why_not, item.similarity, item.score or 0, kind, words, item.hours_apart)
