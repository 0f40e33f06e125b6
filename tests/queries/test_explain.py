"""Why two articles are called copies or not."""

import threading
from dataclasses import replace

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import OverlapEstimate
from aggregator.dedup.verdict import Policy, is_copy
from aggregator.domain import Article
from aggregator.errors import NotFound
from aggregator.queries import explain as module
from aggregator.queries.explain import Explainer
from aggregator.store.memory import MemoryStore
from tests.support.factories import core, edited, in_process, story
from tests.support.template_sentences import FRAMES


@pytest.fixture
async def explain() -> Explainer:
    """Two stored copies and an unrelated article; texts are kept."""
    newsroom = core(MemoryStore())
    await newsroom.post("a", "At least 12 people were hurt. " + story(1))
    await newsroom.post("b", "At least 15 people were hurt. " + edited(story(1), 2))
    await newsroom.post("c", story(3))
    return Explainer(newsroom.index, in_process(newsroom.analyser), Policy())


async def test_copies(explain: Explainer) -> None:
    """Bits, shared passages and changed figures of two stored copies."""
    found = await explain.explain_pair("a", "b")

    assert found.is_copy and found.updated_figures
    assert found.distance == len(found.differing_bits or ())
    assert found.figures == (("12",), ("15",))
    assert found.shared_passages and len(found.shared_passages[0].split()) >= 3
    assert "so they are copies" in found.summary


async def test_what_only_one_of_them_has() -> None:
    """Runs of words outside all shared shingles, of either; characters where words are not separated."""
    newsroom = core(MemoryStore())
    explain = Explainer(newsroom.index, in_process(newsroom.analyser), Policy())

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

    assert english.shared_passages == ("the ferry sank off the", "in heavy fog")
    assert english.own_passages == (("long pier",), ("new bridge", "today"))
    assert chinese.shared_passages == ("市议会今天通过新的",)
    assert chinese.own_passages == (("桥梁预算案",), ("河堤预算案",))
    assert mixed.own_passages == (("市议会今天通过新的桥梁预算案",), ("the council paid for a bridge",))
    assert (same.shared_passages, same.own_passages) == (("two words",), ((), ()))


async def test_symmetric(explain: Explainer) -> None:
    """Who is named first does not matter."""
    one, other = await explain.explain_pair("a", "c"), await explain.explain_pair("c", "a")

    assert (one.distance, one.overlap, one.is_copy) == (other.distance, other.overlap, other.is_copy)
    assert not one.is_copy


async def test_pasted_texts(explain: Explainer) -> None:
    """Texts that are not stored can be compared, with stored ones too."""
    assert (await explain.explain_pair(Article(id="", text=story(3)), "c")).overlap.containment == 1.0


async def test_comparing_does_not_hold_up_other_requests(
    explain: Explainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Megabytes of shared passages take a second: not on the thread that serves everybody."""
    compare, where = module.explain, []
    monkeypatch.setattr(
        module, "explain", lambda *given: where.append(threading.current_thread()) or compare(*given)
    )

    assert (await explain.explain_pair("a", "b")).is_copy
    assert where and where[0] is not threading.main_thread()


async def test_the_policy_in_force_is_the_one_explained() -> None:
    """Under the paper's rule bits alone make a copy, and the sentence says so."""
    newsroom = core(MemoryStore())
    paper = Explainer(newsroom.index, in_process(newsroom.analyser), Policy(name="hamming", duplicate_bits=0))
    same, other = Article(id="", text=story(1)), Article(id="", text="Intro first. " + edited(story(1), 2))

    assert (await paper.explain_pair(same, same)).is_copy
    found = await paper.explain_pair(same, other)
    assert found.is_copy == (found.distance == 0)
    assert "policy hamming: a copy is at most 0 bits apart" in found.summary


def test_the_sentence_names_the_number_that_decided() -> None:
    """Texts of about one length must share more: "not copies" must not stand beside a number that was reached."""
    framed = OverlapEstimate(containment=0.4, resemblance=0.25, shared=80.0, size_ratio=1.0)
    padded = OverlapEstimate(containment=0.4, resemblance=0.2, shared=80.0, size_ratio=0.5)

    said = [
        module._content_summary(9, one, 0.5, is_copy(one, 0.5, Policy()), Policy(), True)
        for one in (framed, padded)
    ]
    assert (
        "not copies (a copy of about one length shares 20% and 100 shingles with a similarity of 0.2"
        in said[0]
    )
    assert "so they are copies (a copy of these lengths shares 20% and 60 shingles" in said[1]


async def test_texts_not_kept() -> None:
    """Without kept texts the answer says which setting is off, and the rest is there."""
    newsroom = core(MemoryStore(), store_texts=False)
    await newsroom.post("a", story(1))
    await newsroom.post("b", story(1))
    found = await Explainer(newsroom.index, in_process(newsroom.analyser), Policy()).explain_pair("a", "b")

    assert found.shared_passages is None and found.own_passages is None
    assert "store_texts is off" in found.summary
    assert found.overlap.containment == 1.0


async def test_unknown_id(explain: Explainer) -> None:
    """An id that is not stored is named."""
    with pytest.raises(NotFound, match="nobody"):
        await explain.explain_pair("a", "nobody")


async def test_the_title_dependent_rule_is_explained() -> None:
    """Under policy same-event the sentence says what such headlines ask of the texts."""
    newsroom = core(MemoryStore())
    same_event = Explainer(newsroom.index, in_process(newsroom.analyser), Policy(name="same-event"))
    one, other = (
        Article(id="", title="Ferry late", text=story(1)),
        Article(id="", title="Dam breaks", text=story(2)),
    )

    found = await same_event.explain_pair(one, other)
    assert not found.is_copy
    assert "asks for 0.85 under such headlines: not the same event" in found.summary
    assert (await same_event.explain_pair(one, one)).is_copy


async def test_articles_in_different_languages_are_not_called_copies() -> None:
    """They lie in spaces that never meet, and the sentence names the languages, whatever their wording."""
    newsroom = core(MemoryStore())
    explain = Explainer(newsroom.index, in_process(newsroom.analyser), Policy())

    side, other = await explain.load_pair(*[Article(id="", title="Ferry port Estmark", lang="de")] * 2)
    found = module.explain(replace(side, lang="en", space="en.0000"), other, Policy())

    assert found.overlap.containment == 1.0 and not found.is_copy and found.distance is None
    assert "different spaces (languages en and de: en.0000, xx." in found.summary
    assert "never compared" in found.summary


async def test_a_frame_with_other_names_is_told() -> None:
    """One notice about two places: not copies, and why; of strangers nothing is said about frames."""
    newsroom = core(MemoryStore())
    explain = Explainer(newsroom.index, in_process(Analyzer(load_models())), Policy())
    lang, title, text, fillings = FRAMES["weather"]
    one, other = (Article(id="", title=title.format(**f), text=text.format(**f), lang=lang) for f in fillings)
    framed, strangers = (
        await explain.explain_pair(one, other),
        await explain.explain_pair(one, Article(id="", text=story(3))),
    )

    assert not framed.is_copy and framed.summary.endswith("one frame with other names.")
    assert "frame" not in strangers.summary


async def test_what_makes_an_article_of_its_own_is_said() -> None:
    """A flash with another figure, and an article behind its own flash."""
    newsroom = core(MemoryStore())
    explain = Explainer(newsroom.index, in_process(newsroom.analyser), Policy())

    def flash(rate: str) -> Article:
        return Article(
            id="", title=f"Central bank of Estmark raises its key rate by a quarter to {rate} percent"
        )

    figures = await explain.explain_pair(flash("4.25"), flash("4.50"))
    told = await explain.explain_pair(
        flash("4.25"), Article(id="", title=flash("4.25").title, text=f"{flash('4.25').title}. {story(1)}")
    )

    assert (figures.is_copy, figures.updated_figures) == (False, True)
    assert "in texts this short they are the news" in figures.summary
    assert told.is_copy and "But the shorter one only announces the longer one" in told.summary
    assert "updates_are_new" not in told.summary


async def test_fingerprints_alone_say_nothing_of_wording() -> None:
    """What is not kept is not called absent: no "0% of the wording" of two texts that share all of it."""
    policy = Policy(name="hamming")
    newsroom = core(MemoryStore(), policy=policy, store_texts=False, fingerprints_only=True)
    await newsroom.post("a", story(1))
    await newsroom.post("b", story(1))

    found = await Explainer(newsroom.index, in_process(newsroom.analyser), policy).explain_pair("a", "b")

    assert (
        found.is_copy and "The articles are 0 bits apart, so they are copies (policy hamming" in found.summary
    )
    assert "wording (about" not in found.summary and "fingerprints_only" in found.summary
