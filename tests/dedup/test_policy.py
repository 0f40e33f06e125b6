"""Selection of a policy by name and by source."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.dedup.policy import Policy, PolicyProfiles, SourceRule
from aggregator.errors import InvalidInput

AGENCY, REPRINT = Policy(updates_are_new=True), Policy(name="hamming")
PROFILES = PolicyProfiles(
    Policy(),
    {"agency": AGENCY, "reprint": REPRINT},
    [
        SourceRule(("Quill Wire", "*.quill.example"), "agency"),
        SourceRule(("own.mirror.example",), "default"),
        SourceRule(("*MIRROR.example", "Straße ?"), "reprint"),
    ],
)


@pytest.mark.parametrize(
    ("source", "profile"),
    [
        ("Quill Wire", "agency"),
        ("QUILL wire", "agency"),
        ("Quill Wire 2", "default"),
        ("The Quill Wire", "default"),
        ("world.quill.example", "agency"),
        ("quill.example", "default"),
        ("a-mirror.EXAMPLE", "reprint"),
        ("own.mirror.example", "default"),
        ("STRASSE 9", "reprint"),
        ("Straße 10", "default"),
        ("", "default"),
    ],
)
def test_the_first_rule_with_a_matching_pattern_applies(source: str, profile: str) -> None:
    """A pattern matches the whole name, regardless of case; without a match the default applies."""
    assert PROFILES.select("", source).name == profile


def test_the_name_of_the_request_takes_precedence() -> None:
    """Also ``default``, which leads back from the profile of the source."""
    assert PROFILES.select("reprint", "Quill Wire").policy is REPRINT
    assert PROFILES.select("default", "Quill Wire").policy == Policy()


def test_an_unknown_name_is_an_error_with_the_known_names() -> None:
    """The name is quoted, shortened."""
    with pytest.raises(
        InvalidInput, match=r"'agenci'; did you mean 'agency'\? known: default, agency, reprint"
    ) as e:
        PROFILES.select("agenci", "Quill Wire")
    with pytest.raises(InvalidInput) as long:
        PROFILES.named("x" * 1000)

    assert e.value.field == "policy"
    assert len(str(long.value)) < 200


@given(st.text(max_size=40), st.sampled_from(PROFILES.names))
def test_a_source_with_a_pattern_of_its_own_name_is_matched(source: str, profile: str) -> None:
    """Characters with a meaning in patterns match themselves in brackets; the choice never varies."""
    pattern = "".join(f"[{c}]" if c in "*?[" else c for c in source)
    profiles = PolicyProfiles(
        Policy(), {"agency": AGENCY, "reprint": REPRINT}, [SourceRule((pattern,), profile)]
    )

    assert profiles.select("", source).name == profile
    assert profiles.select("", source) is profiles.select("", source)


@given(st.text(max_size=20))
def test_a_rule_for_everything_selects_its_profile(source: str) -> None:
    """``*`` matches every source, an empty one and one with line breaks included."""
    profiles = PolicyProfiles(Policy(), {"agency": AGENCY}, [SourceRule(("*",), "agency")])

    assert profiles.select("", source).policy is AGENCY


def test_profiles_of_one_policy_select_it_for_all() -> None:
    """A policy alone is a set of profiles with the default."""
    profiles = PolicyProfiles(AGENCY)

    assert profiles.names == ("default",)
    assert profiles.select("", "Quill Wire").policy is AGENCY


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"min_containment": 80}, "min_containment: 80 is not from 0 to 1"),
        ({"later_containment": 80}, "later_containment: 80 is not from 0 to 1"),
        ({"keep_if_adds": 20}, "keep_if_adds: 20 is not from 0 to 1"),
        ({"min_opening": float("nan")}, "min_opening: nan is not from 0 to 1"),
        ({"min_shared_shingles": -1}, "min_shared_shingles: -1 is not from 0 to inf"),
        ({"duplicate_bits": 65, "related_bits": 65}, "duplicate_bits: 65 is not from 0 to 64"),
        ({"related_bits": 2}, "related_bits: 2 must not be below duplicate_bits"),
    ],
)
def test_a_value_outside_its_range_is_refused(value: dict[str, Any], sentence: str) -> None:
    """Wherever a policy is made: in Python, from settings, a profile or a copy of another."""
    with pytest.raises(ValueError, match=sentence):
        Policy(**value)
    with pytest.raises(ValueError, match=sentence):
        replace(Policy(), **value)
