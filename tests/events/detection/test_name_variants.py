"""Two forms of one name are one term."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aggregator.analysis.text import tokenizer
from aggregator.events.detection.items import to_window_item
from aggregator.events.detection.name_variants import VARIANTS
from aggregator.events.detection.surface_forms import surface_forms
from tests.support.detector_stream import START_MS, DetectorStream


@pytest.mark.parametrize(
    ("adjective", "name"),
    [("Egyptian", "Egypt"), ("French", "France"), ("Libyan", "Libya"), ("Turkish", "Turkey")],
)
def test_the_variants_are_stems_of_the_tokenizer(adjective: str, name: str) -> None:
    """Both words give the same term."""
    (variant,), (term,) = tokenizer.tokenize(adjective, "en"), tokenizer.tokenize(name, "en")
    assert VARIANTS[variant] == term


def test_no_name_is_a_variant_of_another() -> None:
    """A second replacement would change nothing."""
    assert not set(VARIANTS.values()) & set(VARIANTS)


def test_an_item_holds_a_name_once() -> None:
    """With the larger weight of its two forms; editors read a word of the headlines."""
    stream = DetectorStream()
    item = stream.item(0, "army", title="Egyptian army moves", lang="en")
    terms = (("egyptian", 1.0), ("egypt", 0.5), ("armi", 0.2), ("none", 0.0))
    member = to_window_item(replace(item, terms=terms), START_MS, START_MS, 1000)
    assert member.terms == {"egypt": 255, "armi": 51}
    assert surface_forms(["egypt"], [member]) == {"egypt": "Egyptian"}
