"""Selection of a policy by name and by source."""

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
    with pytest.raises(InvalidInput, match="unknown profile 'agenci'; known: default, agency, reprint") as e:
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


def test_inconsistent_profiles_are_a_programming_error() -> None:
    """The file is checked before; a reserved name or an unknown profile never gets here."""
    with pytest.raises(ValueError, match="default"):
        PolicyProfiles(Policy(), {"default": AGENCY})
    with pytest.raises(ValueError, match="absent"):
        PolicyProfiles(Policy(), {}, [SourceRule(("*",), "absent")])
