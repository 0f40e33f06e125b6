"""Explanations: why two articles are copies or not."""

import threading
from dataclasses import replace
from random import Random
from typing import Any, get_args

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.dedup.other_news import Reason
from aggregator.dedup.policy import Policy, PolicyProfiles
from aggregator.domain import Article
from aggregator.errors import NotFound
from aggregator.queries import explain as module
from aggregator.queries.explain import Explainer
from aggregator.queries.ranking import RelatedOptions
from aggregator.store.memory import MemoryStore
from aggregator.time_units import DAY_MS
from aggregator_client.wire import ExplainOut
from tests.support.factories import core, edited, in_process, story
from tests.support.template_sentences import TEMPLATES


@pytest.fixture
async def explain() -> Explainer:
    """Two stored copies and an unrelated article; texts are kept."""
    newsroom = core(MemoryStore())
    await newsroom.post("a", "At least 12 people were hurt. " + story(1))
    await newsroom.post("b", "At least 15 people were hurt. " + edited(story(1), 2))
    await newsroom.post("c", story(3))
    return newsroom.explain


def own_passages(found: ExplainOut) -> tuple[list[str] | None, list[str] | None]:
    """The passages of only the first and only the second article."""
    return found.a.own_passages, found.b.own_passages


async def test_copies(explain: Explainer) -> None:
    """Bits, shared passages and changed figures of two stored copies."""
    found = await explain.explain_pair("a", "b")

    assert found.is_copy and found.updated_figures
    assert found.distance == len(found.differing_bits or ())
    assert (found.a.figures, found.b.figures) == (["12"], ["15"])
    assert found.shared_passages and len(found.shared_passages[0].split()) >= 3
    assert found.summary.startswith("Copies: ")


async def test_passages_of_only_one_article() -> None:
    """Runs of words outside all shared shingles; runs of characters in languages without spaces."""
    explain = core(MemoryStore()).explain

    def article(text: str, lang: str) -> Article:
        return Article(id="", text=text, lang=lang)

    english = await explain.explain_pair(
        article("The ferry sank off the long pier in heavy fog", "en"),
        article("The ferry sank off the new bridge in heavy fog today", "en"),
    )
    chinese = await explain.explain_pair(
        article("市议会今天通过新的桥梁预算案", "zh"), article("市议会今天通过新的河堤预算案", "zh")
    )
    mixed = await explain.explain_pair(
        article("市议会今天通过新的桥梁预算案", "zh"), article("The council paid for a bridge", "en")
    )
    same = await explain.explain_pair(article("Two words", "en"), article("Two words", "en"))

    assert english.shared_passages == ["The ferry sank off the", "in heavy fog"]
    assert own_passages(english) == (["long pier"], ["new bridge", "today"])
    assert chinese.shared_passages == ["市议会今天通过新的"]
    assert own_passages(chinese) == (["桥梁预算案"], ["河堤预算案"])
    assert own_passages(mixed) == (["市议会今天通过新的桥梁预算案"], ["The council paid for a bridge"])
    assert (same.shared_passages, own_passages(same)) == (["Two words"], ([], []))


async def test_passages_are_compared_as_the_sketches_are() -> None:
    """Korean by syllables, whatever its spacing; German with umlauts written out; both shown as printed."""
    explain = core(MemoryStore()).explain

    def article(text: str, lang: str) -> Article:
        return Article(id="", text=text, lang=lang)

    korean = await explain.explain_pair(
        article("항구를 다시 열수 있다", "ko"), article("항구를 다시 열 수 있다", "ko")
    )
    german = await explain.explain_pair(
        article("Die Fähre nach Köln fährt", "de"), article("Die Faehre nach Koeln fehlt", "de")
    )

    assert korean.shared_passages == ["항구를 다시 열수 있다"]
    assert own_passages(korean) == ([], [])
    assert german.shared_passages == ["Die Fähre nach Köln"]
    assert own_passages(german) == (["fährt"], ["fehlt"])


async def test_symmetric(explain: Explainer) -> None:
    """The order of the two articles does not matter."""
    explanation, reverse = await explain.explain_pair("a", "c"), await explain.explain_pair("c", "a")

    assert (explanation.distance, explanation.overlap, explanation.is_copy) == (
        reverse.distance,
        reverse.overlap,
        reverse.is_copy,
    )
    assert not explanation.is_copy


async def test_pasted_texts(explain: Explainer) -> None:
    """A text that is not stored can be compared with a stored one."""
    assert (await explain.explain_pair(Article(id="", text=story(3)), "c")).overlap.containment == 1.0


async def test_a_comparison_does_not_block_the_event_loop(
    explain: Explainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts of some megabytes take a second, so the comparison runs in another thread."""
    threads: list[threading.Thread] = []
    original = module.explain

    def recorded(a: module.ComparedArticle, b: module.ComparedArticle, *others: Any) -> ExplainOut:
        threads.append(threading.current_thread())
        return original(a, b, *others)

    monkeypatch.setattr(module, "explain", recorded)

    assert (await explain.explain_pair("a", "b")).is_copy
    assert threads and threads[0] is not threading.main_thread()


async def test_the_configured_policy_is_explained() -> None:
    """Under policy hamming the distance alone decides, and the summary says so."""
    paper = core(MemoryStore(), policy=Policy(name="hamming", duplicate_bits=0)).explain
    same, other = Article(id="", text=story(1)), Article(id="", text="Intro first. " + edited(story(1), 2))

    assert (await paper.explain_pair(same, same)).is_copy
    found = await paper.explain_pair(same, other)
    assert found.is_copy == (found.distance == 0)
    assert "by the policy hamming: their fingerprints differ in" in found.summary


TOLL = "At least 12 people were hurt. " + story(1)


@pytest.mark.parametrize(
    ("text", "source", "reason"),
    [
        (edited(TOLL, 2), "Radio", " are new, less than 20%."),
        (TOLL + " " + story(7), "Radio", " of its words are new."),
        (f"{TOLL} {' '.join(story(7).split()[:60])}", "Radio", "it contains the original and is longer."),
        (TOLL.replace("12", "15"), "Wire", "its outlet replaced figures."),
        (TOLL.replace("12", "15"), "Radio", "a correction counts from the same outlet only."),
    ],
)
async def test_whether_the_later_copy_is_kept_is_explained(text: str, source: str, reason: str) -> None:
    """As the crawler was answered, in a field and a sentence with the reason."""
    newsroom = core(MemoryStore())
    await newsroom.post("first", TOLL, source="Wire", title="Ferry sold")
    answer = await newsroom.post("later", text, source=source, title="Ferry sold")
    found = await newsroom.explain.explain_pair("later", "first")

    assert answer.outcome.verdict == "duplicate" and found.is_copy
    assert (found.keep, found.keep_reason) == (answer.outcome.keep, answer.outcome.keep_reason)
    assert (found.keep_reason is not None) == found.keep
    assert f"(keep: {str(found.keep).lower()})" in found.summary and found.summary.endswith(reason)


async def test_a_stored_pair_is_explained_as_it_was_decided() -> None:
    """Readers do not have a dropped copy: what the later one adds is counted without it."""
    newsroom, parts = core(MemoryStore()), story(1, 30).split(". ")
    own = story(7, 5)
    texts = {
        "kept": ". ".join(parts),
        "dropped": ". ".join([*parts[:29], own]),
        "later": ". ".join([*parts[:25], own, story(8, 4)]),
    }
    answers = {id_: await newsroom.post(id_, text, source=id_) for id_, text in texts.items()}
    found = {id_: await newsroom.explain.explain_pair("later", id_) for id_ in ("kept", "dropped")}
    anew = await newsroom.explain.explain_pair("later", Article(id="", text=texts["dropped"]))

    later = answers["later"].outcome
    assert [answers[id_].outcome.keep for id_ in texts] == [True, False, True]
    assert later.match and later.match.id == "dropped"
    assert [each.keep for each in found.values()] == [True, True] and not anew.keep
    assert found["dropped"].summary.count(f"{later.adds:.0%} of its words are new") == 1
    assert "The earlier one was not kept itself" in found["dropped"].summary
    assert "not kept itself" not in found["kept"].summary


async def test_a_version_that_follows_is_explained() -> None:
    """Of one outlet and with less than half of the earlier one it is related, as it was answered."""
    newsroom = core(MemoryStore(), policy=Policy(same_outlet_containment=0.3))
    first, other = story(1, 40).split(". "), story(2, 40).split(". ")
    await newsroom.post("first", ". ".join(first), source="Wire", title="Ferry sold")
    text = ". ".join((*first[:16], *other[:24]))
    answer = await newsroom.post("later", text, source="Wire", title="Ferry sold")
    found = await newsroom.explain.explain_pair("later", "first")

    assert (answer.outcome.verdict, answer.outcome.follows) == ("related", "first")
    assert (found.is_copy, found.keep) == (False, True)
    assert found.summary.endswith("share less than half, the later one is related.")


async def test_a_pair_that_a_second_outlet_would_confirm_is_explained() -> None:
    """The later article quotes the end of the earlier one at length, below a different lead."""
    newsroom = core(MemoryStore())
    report = story(5, 40).split(". ")
    quoting = f"{story(900, 14)} {'. '.join(report[18:30])}."
    await newsroom.post("wire", ". ".join(report), source="Wire")
    await newsroom.post("quoting", quoting, source="Radio")
    before = await newsroom.explain.explain_pair("wire", "quoting")
    of_one_outlet = await newsroom.explain.explain_pair(
        Article(id="", text=". ".join(report), source="Radio", lang="en"),
        Article(id="", text=quoting, source="Radio", lang="en"),
    )

    assert not before.is_copy
    assert "a duplicate if copies of the earlier one from two outlets share as much" in before.summary
    assert "two outlets" not in of_one_outlet.summary


async def test_texts_not_kept() -> None:
    """Without kept texts the summary names the setting; everything else is available."""
    newsroom = core(MemoryStore(), store_texts=False)
    await newsroom.post("a", story(1))
    await newsroom.post("b", story(1))
    found = await newsroom.explain.explain_pair("a", "b")

    assert found.shared_passages is None and own_passages(found) == (None, None)
    assert "store_texts is off" in found.summary
    assert found.overlap.containment == 1.0


async def test_unknown_id(explain: Explainer) -> None:
    """The error names an id that is not stored."""
    with pytest.raises(NotFound, match="unknown"):
        await explain.explain_pair("a", "unknown")


async def test_articles_in_different_languages_are_no_copies() -> None:
    """They are never judged as copies, even if the wording is equal; the summary names the languages."""
    explain = core(MemoryStore()).explain

    side, other = await explain.load_pair(*[Article(id="", title="Ferry port Estmark", lang="de")] * 2)
    found = module.explain(
        replace(side, record=replace(side.record, lang="en", space="en.0000")), other, Policy()
    )

    assert found.overlap.containment == 1.0 and not found.is_copy and found.distance is None
    assert found.summary.startswith(
        "Different languages (en and de): not compared, neither as copies nor as related."
    )
    assert found.relatedness is None and found.keep


async def test_a_template_with_other_names_is_explained() -> None:
    """One notice about two places is a template, no copy; of unrelated articles no template is mentioned."""
    newsroom, analyze_many = core(MemoryStore()), in_process(Analyzer(load_models()))
    explain = Explainer(newsroom.index, analyze_many, PolicyProfiles(Policy()), newsroom.related)
    lang, title, text, fillings = TEMPLATES["weather"]
    first, second = (
        Article(id="", title=title.format(**f), text=text.format(**f), lang=lang) for f in fillings
    )
    template, unrelated = (
        await explain.explain_pair(first, second),
        await explain.explain_pair(first, Article(id="", text=story(3))),
    )

    assert not template.is_copy and template.summary.endswith("one template with other names.")
    assert "template" not in unrelated.summary


async def test_novelty_is_explained() -> None:
    """A flash with another figure is not a duplicate, as headline and as text; an article after it is one."""
    explain = core(MemoryStore()).explain

    def flash(rate: str, **fields: Any) -> Article:
        title = f"Central bank of Estmark raises its key rate by a quarter to {rate} percent"
        return Article(id="", lang="en", **{"title": title} | fields)

    headlines = await explain.explain_pair(flash("4.25"), flash("4.50"))
    texts = await explain.explain_pair(*(flash(r, title="", text=flash(r).title) for r in ("4.25", "4.50")))
    announced = await explain.explain_pair(
        flash("4.25"), flash("4.25", text=f"{flash('4.25').title}. {story(1)}")
    )

    assert not headlines.is_copy and "so the headlines decide, and these differ" in headlines.summary
    assert (texts.is_copy, texts.updated_figures) == (False, True)
    assert "in short texts they are the news" in texts.summary
    assert announced.is_copy and "But" not in announced.summary
    assert "updates_are_new" not in announced.summary


async def test_each_reason_has_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever keeps two articles with much shared wording apart, the summary ends with a sentence on it."""
    explain, endings = core(MemoryStore()).explain, set[str]()
    articles = [Article(id="", title=title, text=story(1)) for title in ("Ferry sold", "Mill prize")]
    for reason in get_args(Reason):
        monkeypatch.setattr(module, "compare_pair", lambda *args, reason=reason: (False, reason))
        endings.add((await explain.explain_pair(*articles)).summary.partition(" alike.")[2])

    assert len(endings) == len(get_args(Reason))
    assert all(ending.endswith(".") for ending in endings if ending)


async def test_a_part_of_a_collection_is_explained() -> None:
    """An item of a briefing is not a copy of it, whichever of the two arrives first."""
    explain = core(MemoryStore()).explain
    briefs = [" ".join(story(number).split()[:60]) for number in range(10, 16)]
    briefing = Article(id="", title="Morning briefing in five minutes", text=" ".join(briefs), lang="en")
    item = Article(id="", title="Orchard thieves caught", text=briefs[2], lang="en")

    for pair in ((briefing, item), (item, briefing)):
        found = await explain.explain_pair(*pair)
        assert not found.is_copy and "part of the longer one" in found.summary


async def test_relatedness_is_explained() -> None:
    """In two sentences and fields; the words are those of the headlines; unrelated articles have no kind."""
    newsroom = core(MemoryStore())
    flood = "Floods close the Brackwater tunnel"
    await newsroom.post("a", "Estmark opens its shelters tonight.", title=flood)
    await newsroom.post("b", "Shelters fill in Estmark.", title="Brackwater tunnel stays shut")
    await newsroom.post("c", "An orchard festival sells cider.", title="Cider for all")

    related = (await newsroom.explain.explain_pair("a", "b")).relatedness
    other = (await newsroom.explain.explain_pair("a", "c")).relatedness

    assert related and other
    assert related.summary.startswith(f"Probability of one subject {related.score:.3f}: both are about ")
    assert {"Brackwater", "tunnel"} <= {each.word for each in related.shared}
    assert 0.3 < sum(each.weight for each in related.shared) <= 1.05  # of all common words
    assert ", less than 0.78: not listed." in other.summary and (other.shared, other.kind) == ([], "")


WORDS = "brackwater tunnel flood shelter cider orchard ferry pier council bridge lantern quarry"


@pytest.mark.parametrize(("seed", "minimum"), list(enumerate((0.0, 0.4, 0.78, 0.78, 0.95))))
async def test_an_article_is_listed_if_and_only_if_the_explanation_says_so(seed: int, minimum: float) -> None:
    """Random articles of some weeks, copies among them, members of an event, and a minimum of the server."""
    random, newsroom = Random(seed), core(MemoryStore())
    for number in range(14):
        words = [f"{word}{copy}" for word in random.sample(WORDS.split(), 4) for copy in range(6)]
        at_ms = newsroom.clock.now_ms - random.choice([0, 1, 5, 9, 40]) * DAY_MS
        await newsroom.post(f"n{number}", " ".join(words), published_at_ms=at_ms, title=words[0])
        if number % 5 == 0:
            await newsroom.post(f"copy{number}", " ".join(words), published_at_ms=at_ms, title=words[0])
    ids = [f"n{number}" for number in range(14)] + ["copy0", "copy5", "copy10"]
    stored = await newsroom.index.articles.get_many(ids)
    groups = {stored[id_].group for id_ in ("n1", "n2", "n3")}

    async def members_of_event(group: int) -> list[str]:
        return ["n1", "n2", "n3"] if group in groups else []

    newsroom.related._min_score, newsroom.related._members_of_event = minimum, members_of_event
    said, listed = set[tuple[str, str]](), set[tuple[str, str]]()
    for a in ids:
        listed |= {(a, item.id) for item in await newsroom.related.of_id(a, RelatedOptions(limit=100))}
        every = await newsroom.related.of_id(a, RelatedOptions(limit=100, min_score=0.0))
        kinds = {item.id: item.kind for item in every}
        for b in {*ids} - {a}:
            found = (await newsroom.explain.explain_pair(a, b)).relatedness
            assert found and (": not listed" in found.summary) is not found.listed
            assert found.kind == kinds.get(b, found.kind) and (found.kind or found.score < 0.5)
            if found.listed:
                said.add((a, b))

    assert said == listed and ("n1", "n2") in listed


@pytest.mark.parametrize(
    ("minimum", "days", "of_event", "sentence"),
    [
        (0.5, 0, False, ": both are about "),
        (0.999, 0, False, ", less than 0.999: not listed."),
        (0.78, 25, False, ", needed so far apart (with half_life=0 0.78): not listed."),
        (0.999, 25, True, ", by wording alone: both are about "),
    ],
)
async def test_the_rule_that_applies_is_named(
    minimum: float, days: int, of_event: bool, sentence: str
) -> None:
    """The minimum of the server, the days between, the event."""
    newsroom = core(MemoryStore())
    at_ms, flood = newsroom.clock.now_ms - days * DAY_MS, "Floods close the Brackwater tunnel"
    await newsroom.post("a", "Estmark opens its shelters tonight.", title=flood)
    other = "Estmark shelters fill while the tunnel under Brackwater stays shut. Floods rise."
    await newsroom.post("b", other, published_at_ms=at_ms)
    newsroom.related._min_score = minimum

    async def members_of_event(group: int) -> list[str]:
        return ["a", "b"] if of_event else []

    newsroom.related._members_of_event = members_of_event
    found = (await newsroom.explain.explain_pair("a", "b")).relatedness
    reverse = (await newsroom.explain.explain_pair("b", "a")).relatedness

    assert found and reverse and sentence in found.summary and sentence in reverse.summary


async def test_copies_of_one_article_are_not_listed(explain: Explainer) -> None:
    """Neither the copy of the article itself nor that of another one, and the sentence says so."""
    own = (await explain.explain_pair("a", "b")).relatedness
    other = (await explain.explain_pair("c", "b")).relatedness

    assert own and own.summary.partition(", ")[2].startswith("but they are copies of one article: not listed")
    assert other and "but it is a copy, and lists have originals: not listed" in other.summary
