"""The synthetic corpus is reproducible, with copies of each kind in equal shares."""

from collections import Counter

from tests.support.synthetic_corpus import (
    COPY_KINDS,
    SyntheticPlan,
    article_id,
    article_row,
    planted_pairs,
)

PLAN = SyntheticPlan(1_000, 100)


def words(number: int) -> list[str]:
    """The words of an article."""
    return str(article_row(PLAN, number)["text"]).split()


def test_every_kind_has_its_share_and_no_original_is_used_twice() -> None:
    """Of 100 copies each kind has 20; joined ones have two originals."""
    planted = list(planted_pairs(PLAN))

    assert Counter(kind for kind, _, _ in planted) == {
        kind: 40 if kind == "joined" else 20 for kind in COPY_KINDS
    }
    originals = [original for _, _, original in planted]
    assert len(set(originals)) == len(originals)
    assert {int(id_[1:]) % 10 for id_ in originals} == {3, 4}


def test_copies_are_derived_from_their_originals() -> None:
    """The copy of each kind is compared with its originals."""
    for number in range(9, 60, 10):
        planted = PLAN.copy_source(number)
        assert planted is not None
        kind, originals = planted
        copy, original = words(number), words(originals[0])
        if kind == "truncated":
            assert copy == original[: len(original) * 3 // 10]
        elif kind == "joined":
            assert copy == original + words(originals[1])
        elif kind == "header":
            assert copy[15:] == original[15:]
            assert copy[:8] != original[:8]
        elif kind == "boilerplate":
            assert len(copy) == len(original) + len(original) // 5
            assert " ".join(original) in " ".join(copy)
        else:
            changed = sum(a != b for a, b in zip(copy, original, strict=True))
            assert 0.7 * len(original) // 10 <= changed <= len(original) // 10


def test_an_article_depends_on_its_number_and_the_seed_only() -> None:
    """The same number and seed give the same article, another seed another text."""
    assert article_row(PLAN, 0) == article_row(PLAN, 0)
    assert article_row(PLAN, 0)["id"] == article_id(0)
    assert article_row(SyntheticPlan(1_000, 100, seed=2), 0)["text"] != article_row(PLAN, 0)["text"]
