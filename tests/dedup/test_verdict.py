"""The duplicate rules at their boundaries."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.shingles import OverlapEstimate
from aggregator.dedup.copy_rule import Evidence, figures_changed
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import Candidate, compare_pair, cosine, decide, related_candidates
from aggregator.domain import NO_SKETCH, Analysis, ArticleRecord, Sketch

VERIFIED, HAMMING = Policy(), Policy(name="hamming")


def subject(
    text_hash: bytes = b"s" * 16,
    figures: tuple[int, ...] = (),
    short: bool = False,
    sketch: Sketch = NO_SKETCH,
) -> Analysis:
    """Return the article to judge."""
    return Analysis("en", "en.0000", 0, text_hash, short, sketch, figures=figures)


def sketch_of_size(shingles: int) -> Sketch:
    """Return the sketch of a text with this number of shingles."""
    return Sketch(shingles, np.empty(0, np.uint32), np.empty(0, np.uint8))


def candidate(
    number: int,
    distance: int = 30,
    containment: float = 0.0,
    shared: float = 0.0,
    text_hash: bytes = b"c" * 16,
    canonical: tuple[str, int] | None = None,
    figures: tuple[int, ...] = (),
    similarity: float = 0.5,
    title: str = "",
    short: bool = False,
    sketch: Sketch = NO_SKETCH,
    opening: float = 0.9,
) -> Candidate:
    """Return a stored article named after its number."""
    record = ArticleRecord(
        number,
        number,
        f"a{number}",
        "en.0000",
        "en",
        0,
        text_hash,
        short,
        title,
        "",
        "",
        None,
        sketch,
        (),
        figures,
    )
    overlap = OverlapEstimate(containment, containment / 2, shared, size_ratio=0.6, opening=opening)
    return Candidate(record, canonical or (record.id, number), Evidence(overlap, similarity, distance))


def with_overlap(stored: Candidate, overlap: OverlapEstimate) -> Candidate:
    """Return the candidate with another overlap."""
    return replace(stored, evidence=replace(stored.evidence, overlap=overlap))


def test_nothing_near_is_new() -> None:
    """Without candidates, or with distant ones only, an article is new and has no distance."""
    assert decide(subject(), [], VERIFIED).verdict == "new"
    outcome = decide(subject(), [candidate(1, distance=8)], VERIFIED)
    assert (outcome.verdict, outcome.distance, outcome.match) == ("new", None, None)


@pytest.mark.parametrize(
    ("distance", "verdict"), [(0, "duplicate"), (3, "duplicate"), (4, "related"), (7, "related"), (8, "new")]
)
def test_hamming_policy(distance: int, verdict: str) -> None:
    """The rule of the paper: up to 3 bits duplicate, 4 to 7 related."""
    assert decide(subject(), [candidate(1, distance)], HAMMING).verdict == verdict


@pytest.mark.parametrize("distance", [0, 3, 7])
def test_verified_policy_requires_overlap(distance: int) -> None:
    """However near the fingerprint, without shared wording it is only related."""
    outcome = decide(subject(), [candidate(1, distance)], VERIFIED)

    assert (outcome.verdict, outcome.distance) == ("related", distance)


@pytest.mark.parametrize(("distance", "rule"), [(3, "hamming"), (4, "overlap"), (30, "overlap")])
def test_verified_policy_finds_duplicates_at_any_distance(distance: int, rule: str) -> None:
    """Enough shared wording makes a duplicate; ``rule`` reports how it was proposed."""
    match = decide(subject(), [candidate(1, distance, containment=0.9, shared=200)], VERIFIED).match

    assert match is not None
    assert (match.rule, match.distance, match.overlap) == (rule, distance, 0.9)


@given(
    policy=st.builds(
        Policy,
        name=st.sampled_from(["hamming", "verified"]),
        min_containment=st.floats(0, 1),
        strong_containment=st.floats(0, 1),
        updates_are_new=st.booleans(),
    ),
    distances=st.lists(st.integers(0, 64), min_size=1, max_size=4),
    containments=st.lists(st.floats(0, 1), min_size=4, max_size=4),
    shared=st.floats(0, 300),
    similarity=st.floats(0, 1),
    title=st.sampled_from(["", "Ferry runs aground off Skellan"]),
)
def test_skipped_comparisons_do_not_change_the_outcome(
    policy: Policy,
    distances: list[int],
    containments: list[float],
    shared: float,
    similarity: float,
    title: str,
) -> None:
    """The outcome is the same if similarities and overlaps are computed only where the policy needs them."""
    full = [
        candidate(n, d, containment, shared, similarity=similarity, title=title)
        for n, (d, containment) in enumerate(zip(distances, containments, strict=False), start=1)
    ]
    lean = [
        c
        if c.evidence.overlap.containment >= policy.containment_floor
        else with_overlap(c, OverlapEstimate(0.0, 0.0, 0.0))
        for c in full
        if c.evidence.distance <= policy.related_bits
        or (policy.name == "verified" and policy.copy_rule.may_match(c.evidence.overlap))
    ]
    outcome = decide(subject(), full, policy)

    assert decide(subject(), lean, policy) == outcome
    related = [related_candidates(subject(), candidates, outcome, policy) for candidates in (lean, full)]
    assert [c.record for c in related[0]] == [c.record for c in related[1]]


def test_terms_of_two_languages_are_not_compared() -> None:
    """One text under two tags has different terms: its wording alone decides."""
    stored_terms, arrived = (("alpha", 1.0),), replace(subject(), terms=(("beta", 1.0),))
    stored = candidate(1, containment=0.8, shared=50)
    stored = with_overlap(stored, replace(stored.evidence.overlap, size_ratio=1.0))
    stored = replace(stored, record=replace(stored.record, terms=stored_terms))
    tagged = replace(stored, record=replace(stored.record, lang="de"))

    assert decide(arrived, [stored], VERIFIED).verdict == "new"
    assert decide(arrived, [tagged], VERIFIED).verdict == "duplicate"


@pytest.mark.parametrize(
    ("containments", "id_", "group"), [((0.95, 0.86, 0.9), "a4", "a2"), ((1.0, 0.86, 0.89), "a1", "a1")]
)
def test_the_group_of_most_of_the_closest_matches_is_joined(
    containments: tuple[float, float, float], id_: str, group: str
) -> None:
    """One page between two stories does not move an article; a text that is clearly closer does."""
    canonical = [("a1", 1), ("a2", 2), ("a2", 2)]
    stored = [
        candidate(number, 20, containment, 200, canonical=of)
        for number, containment, of in zip((1, 3, 4), containments, canonical, strict=True)
    ]
    match = decide(subject(), stored, VERIFIED).match

    assert match is not None
    assert (match.id, match.canonical_id) == (id_, group)


def test_a_match_under_the_same_headline_has_precedence() -> None:
    """Parts of a series share a list of parts: most matches, and the closest, are other parts."""
    titles = ("Knots, part 1", "Knots, part 2: hitches", "Knots, part 3")
    stored = [
        candidate(number, 20, containment, 200, canonical=of, title=title)
        for number, containment, of, title in zip(
            (1, 3, 4), (0.92, 0.86, 0.9), [("a1", 1), ("a3", 3), ("a1", 1)], titles, strict=True
        )
    ]
    match = decide(replace(subject(), title="Knots, part 2: hitches"), stored, VERIFIED).match

    assert match is not None
    assert match.canonical_id == "a3"


def printed(*outlets: str) -> list[Candidate]:
    """Copies of one report by ``outlets`` that an article shares a quarter with, but not its opening."""
    stored = []
    for number, outlet in enumerate(outlets, 1):
        shared = candidate(number, 20, 0.25, 100, canonical=("a1", 1), opening=0.0)
        stored.append(replace(shared, record=replace(shared.record, source=outlet)))
    return stored


@pytest.mark.parametrize(
    ("outlets", "verdict"),
    [
        (("Gazette",), "new"),
        (("Gazette", "gazette"), "new"),
        (("Gazette", "Radio"), "duplicate"),
        (("", ""), "duplicate"),
    ],
)
def test_what_two_outlets_printed_is_no_quotation(outlets: tuple[str, ...], verdict: str) -> None:
    """An article that begins otherwise is a copy if it shares enough with copies of two outlets."""
    assert decide(subject(), printed(*outlets), VERIFIED).verdict == verdict


def test_two_reports_with_one_quotation_confirm_nothing() -> None:
    """The copies must be of one group, of other outlets, and share enough."""
    first, second = printed("Gazette", "Radio")
    of_its_own = replace(second, canonical=("a2", 2))
    of_the_same_outlet = replace(second, evidence=replace(second.evidence, same_outlet=True))
    barely = with_overlap(second, replace(second.evidence.overlap, containment=0.19))
    few = with_overlap(second, replace(second.evidence.overlap, shared=15.0))

    for other in (of_its_own, of_the_same_outlet, barely, few):
        assert decide(subject(), [first, other], VERIFIED).verdict == "new"


def test_equal_text_is_exact_under_both_policies() -> None:
    """Equal text wins over nearer candidates, and the earliest one is reported."""
    same = b"s" * 16
    stored = [candidate(3, 0, 0.99, 300), candidate(2, 9, text_hash=same), candidate(1, 9, text_hash=same)]

    for policy in (VERIFIED, HAMMING):
        match = decide(subject(same), stored, policy).match
        assert match is not None
        assert (match.id, match.rule) == ("a1", "exact")


def test_best_match_then_earliest() -> None:
    """The best overlap is reported, whatever the distance; the earliest of equals."""
    stored = [candidate(2, 20, 0.9, 200), candidate(1, 20, 0.9, 200), candidate(9, 1, 0.5, 100)]
    match = decide(subject(), stored, VERIFIED).match

    assert match is not None
    assert match.id == "a1"


def test_a_copy_of_a_copy_reports_the_first_article() -> None:
    """The match is the copy that was found, the canonical article the original."""
    match = decide(subject(), [candidate(2, 1, 0.9, 200, canonical=("a1", 1))], VERIFIED).match

    assert match is not None
    assert (match.id, match.canonical_id, match.canonical_first) == ("a2", "a1", 1)


@given(st.randoms(use_true_random=False))
def test_order_of_candidates_does_not_matter(rng: random.Random) -> None:
    """The outcome is a function of the set of candidates."""
    stored = [candidate(n, n % 9, (n % 5) / 5, 40.0 * (n % 4)) for n in range(1, 12)]
    shuffled = stored.copy()
    rng.shuffle(shuffled)

    for policy in (VERIFIED, HAMMING):
        assert decide(subject(), stored, policy) == decide(subject(), shuffled, policy)


@pytest.mark.parametrize(
    ("a", "b", "changed"),
    [
        ((), (), False),
        ((1, 2), (1, 2), False),
        ((1, 2), (1, 3), True),
        ((1, 2), (1,), False),
        ((1,), (2,), True),
    ],
)
def test_figures_changed(a: tuple[int, ...], b: tuple[int, ...], changed: bool) -> None:
    """A replaced figure counts, a missing one does not."""
    assert figures_changed(a, b) is changed


def test_updates_are_new_makes_an_update_related() -> None:
    """Only if figures were replaced, and never for an equal text."""
    updates_policy = Policy(updates_are_new=True)
    updated, plain = candidate(1, 1, 0.9, 100, figures=(2,)), candidate(2, 1, 0.9, 100, figures=(1,))

    outcome = decide(subject(figures=(1,)), [updated], updates_policy)
    assert (outcome.verdict, outcome.match, outcome.updated_figures) == ("related", None, True)
    assert decide(subject(figures=(1,)), [plain], updates_policy).verdict == "duplicate"
    equal = candidate(3, 0, 1.0, 100, text_hash=b"s" * 16, figures=(2,))
    assert decide(subject(figures=(1,)), [equal], updates_policy).verdict == "duplicate"


def test_a_copy_of_the_update_is_a_duplicate() -> None:
    """The new figures were reported before, however many copies the first version has."""
    first = [candidate(n, 1, 0.95, 100, canonical=("a1", 1), figures=(2,)) for n in (1, 2, 3)]
    update = candidate(4, 1, 0.9, 100, figures=(1,))

    found = decide(subject(figures=(1,)), [*first, update], Policy(updates_are_new=True))

    assert found.verdict == "duplicate" and found.match is not None
    assert found.match.id == "a4"


@pytest.mark.parametrize(
    ("stored", "arrived", "verdict"),
    [(True, True, "related"), (True, False, "duplicate"), (False, True, "duplicate")],
)
def test_other_figures_make_a_flash_related(stored: bool, arrived: bool, verdict: str) -> None:
    """A rate, a score or a toll in a line or two."""
    flash = candidate(1, 12, 0.9, 100, figures=(2,), short=stored)
    found = decide(subject(figures=(1,), short=arrived), [flash], VERIFIED)

    assert (found.verdict, found.updated_figures) == (verdict, verdict == "related")
    again = replace(flash, record=replace(flash.record, figures=(1,)))
    assert decide(subject(figures=(1,), short=arrived), [flash, again], VERIFIED).verdict == "duplicate"


@pytest.mark.parametrize(("shingles", "story_shingles"), [(39, 100), (60, 230), (100, 630), (500, 2001)])
def test_an_article_and_its_teaser_are_of_one_group(shingles: int, story_shingles: int) -> None:
    """In either order, at any lengths; the article after its teaser is kept as the fuller one."""
    flash = candidate(1, 12, 1.0, 37, sketch=sketch_of_size(shingles))
    article = candidate(2, 12, 1.0, 37, sketch=sketch_of_size(story_shingles))

    for later, earlier in ((story_shingles, flash), (shingles, article)):
        found = decide(subject(sketch=sketch_of_size(later)), [earlier], VERIFIED)
        assert (found.verdict, found.keep) == ("duplicate", False)
        assert related_candidates(subject(sketch=sketch_of_size(later)), [earlier], found, VERIFIED) == []


def test_a_related_article_reports_its_match_at_any_distance() -> None:
    """What matches but for its figures is named; other verdicts name near articles only."""
    policy, update = Policy(updates_are_new=True), candidate(1, 12, 0.9, 100, figures=(2,))
    arrived = subject(figures=(1,))

    assert related_candidates(arrived, [update], decide(arrived, [update], policy), policy) == [update]
    found = decide(arrived, [update], VERIFIED)
    assert found.verdict == "duplicate" and related_candidates(arrived, [update], found, VERIFIED) == []


@pytest.mark.parametrize(
    ("figures", "size_ratio", "containment", "verdict"),
    [
        ((11, 12, 13, 14, 15), 0.9, 0.6, "related"),
        ((1, 12, 13, 14, 15), 0.9, 0.6, "duplicate"),
        ((11, 12, 13), 0.9, 0.6, "duplicate"),
        ((11, 12, 13, 14, 15), 0.79, 0.6, "duplicate"),
        ((11, 12, 13, 14, 15), 0.9, 0.9, "duplicate"),
    ],
)
def test_a_template_with_other_figures_is_not_a_duplicate(
    figures: tuple[int, ...], size_ratio: float, containment: float, verdict: str
) -> None:
    """Weekly statistics share long passages and all terms; copies of one of them also share its figures."""
    stored = candidate(1, 5, similarity=0.95, figures=(1, 2, 3, 4, 5))
    overlap = OverlapEstimate(containment, 0.4, 150, size_ratio, opening=0.6)

    found = decide(subject(figures=figures), [with_overlap(stored, overlap)], VERIFIED)

    assert found.verdict == verdict


@pytest.mark.parametrize(("opening", "comparisons"), [(0.6, 1), (0.0, 1), (0.9, 0)])
def test_headlines_are_compared_at_most_once(
    opening: float, comparisons: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the copy rule and the test of templates; most pairs need none."""
    calls = []

    def compare_titles(*titles: str) -> float:
        calls.append(titles)
        return 0.95

    monkeypatch.setattr("aggregator.dedup.verdict.title_similarity", compare_titles)
    is_needed = comparisons > 0
    figures = (1, 2, 3, 4) if is_needed else ()
    stored = candidate(1, shared=25 if is_needed else 200, figures=figures)
    overlap = OverlapEstimate(0.45, 0.4, stored.evidence.overlap.shared, 1.0, opening=opening)
    arrived = replace(subject(figures=tuple(figure + 10 for figure in figures)), text_words=400)

    record = replace(stored.record, text_words=400)

    matches, _ = compare_pair(arrived, record, replace(stored.evidence, overlap=overlap), VERIFIED)

    assert matches
    assert len(calls) == comparisons


SEA, LAND = (("ferry", 0.8), ("harbour", 0.6)), (("orchard", 1.0),)


def test_cosine() -> None:
    """1 for equal vectors, 0 for disjoint or empty ones."""
    assert cosine(SEA, SEA) == pytest.approx(1)
    assert cosine(SEA, LAND) == 0
    assert cosine(SEA, ()) == 0
