"""The file of policy profiles: inheritance, one sentence per fault, and the example in deploy/."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from aggregator import policy_file
from aggregator.dedup.policy import Policy, PolicyProfiles
from aggregator.errors import ConfigurationError
from aggregator.policy_file import load_policies, load_policy_profiles
from aggregator.settings import Settings, load

EXAMPLE = Path(__file__).resolve().parents[1] / "deploy" / "policy-profiles.toml"


def read(directory: Path, text: str, default: Policy | None = None) -> PolicyProfiles:
    """The profiles of a file with this text."""
    file = directory / "profiles.toml"
    file.write_text(text, encoding="utf-8")
    return load_policy_profiles(str(file), default or Policy())


def problems(directory: Path, text: str) -> list[str]:
    """The faults of a file with this text, without the part that names setting and file."""
    with pytest.raises(ConfigurationError) as raised:
        read(directory, text)
    prefix = f"policy_profiles_file: {directory / 'profiles.toml'}"
    assert all(problem.startswith(prefix) for problem in raised.value.problems)
    return [problem.removeprefix(prefix).removeprefix(":").strip() for problem in raised.value.problems]


def test_without_a_file_there_is_the_default_policy_alone() -> None:
    """The default of the setting."""
    assert load_policies(Settings()).names == ("default",)


def test_an_empty_file_has_no_profiles(tmp_path: Path) -> None:
    """A first step of an operator."""
    assert read(tmp_path, "").names == ("default",)


def test_a_profile_inherits_from_the_policy_of_the_settings(tmp_path: Path) -> None:
    """What it does not name has the value of the service."""
    settings = load({}, {"min_containment": 0.5, "related_bits": 6})
    (tmp_path / "p.toml").write_text('[profiles.wire]\npolicy = "hamming"\nduplicate_bits = 2\n')
    policies = load_policies(dataclasses.replace(settings, policy_profiles_file=str(tmp_path / "p.toml")))
    default, wire = policies.default.policy, policies.named("wire").policy

    assert wire == dataclasses.replace(default, name="hamming", duplicate_bits=2)
    assert (wire.related_bits, wire.min_containment) == (6, 0.5)


def test_every_field_of_the_policy_is_a_key(tmp_path: Path) -> None:
    """The name of the rule under ``policy``; whole numbers are accepted for fractions."""
    keys = {"policy" if f.name == "name" else f.name: f for f in dataclasses.fields(Policy) if f.init}
    values = {key: getattr(Policy(), field.name) for key, field in keys.items()}
    lines = [f"{k} = {str(v).lower() if isinstance(v, bool) else repr(v)}" for k, v in values.items()]

    assert read(tmp_path, "\n".join(["[profiles.same]", *lines])).named("same").policy == Policy()
    whole = read(tmp_path, "[profiles.same]\nmin_shared_shingles = 60\n").named("same").policy
    assert type(whole.min_shared_shingles) is float


def test_rules_keep_their_order(tmp_path: Path) -> None:
    """A narrow pattern before a wide one, also back to the default."""
    profiles = read(
        tmp_path,
        "[profiles.wire]\nupdates_are_new = true\n"
        '[[rules]]\nsources = ["desk.wire.example"]\nprofile = "default"\n'
        '[[rules]]\nsources = ["*.wire.example", "Wire"]\nprofile = "wire"\n',
    )

    assert profiles.select("", "Desk.Wire.example").name == "default"
    assert profiles.select("", "a.wire.example").name == profiles.select("", "wire").name == "wire"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[profiles.a]\nmin_contanment = 0.3", "profiles.a.min_contanment: unknown key; allowed: policy,"),
        ("[profiles.a]\ncontainment_floor = 0.3", "profiles.a.containment_floor: unknown key"),
        (
            "[profiles.a]\nmin_containment = 2",
            "profiles.a.min_containment: 2.0 must be a number from 0.01 to 1.",
        ),
        ("[profiles.a]\nmin_containment = nan", "profiles.a.min_containment: nan is not a number."),
        (
            "[profiles.a]\nmin_containment = '1'",
            "profiles.a.min_containment: '1' is not a number without quotes.",
        ),
        ("[profiles.a]\nduplicate_bits = 2.5", "profiles.a.duplicate_bits: 2.5 is not a whole number."),
        ("[profiles.a]\nduplicate_bits = true", "profiles.a.duplicate_bits: True is not a whole number."),
        ("[profiles.a]\nkeep_if_adds = false", "profiles.a.keep_if_adds: False is not a number."),
        ("[profiles.a]\nupdates_are_new = 1", "profiles.a.updates_are_new: 1 is not true or false."),
        ("[profiles.a]\npolicy = 'strict'", "profiles.a.policy: 'strict' must be one of verified, hamming"),
        (
            "[profiles.a]\nduplicate_bits = 5\nrelated_bits = 4",
            "profiles.a.related_bits: 4 must not be below duplicate_bits (5).",
        ),
        ("[profiles.default]\n", "profiles.default: this name is reserved; choose another one."),
        ("[profiles.hamming]\n", "profiles.hamming: this name is reserved"),
        ("[profiles.A]\n", "profiles.A: expected a name of at most 40 lower-case letters"),
        ("[profiles.'a b']\n", "profiles.a b: expected a name"),
        ("[profiles]\na = 1", "profiles: expected tables, such as [profiles.agency]."),
        ("profile = 1", "profile: unknown key; allowed: profiles, rules."),
        (
            "[profiles.a]\n[profiles.a]\n",
            "is not valid TOML: Cannot declare ('profiles', 'a') twice (at line 2",
        ),
        ("[profiles.a]\npolicy = verified", "is not valid TOML: Invalid value (at line 2, column 10)."),
        ("[rules]\nsources = ['x']", "rules: expected a list of tables, each written as [[rules]]."),
        (
            "[[rules]]\nsources = ['x']\nprofile = 'b'",
            "rules, number 1: profile: 'b' is not a profile; known: default.",
        ),
        ("[[rules]]\nsources = ['x']", "rules, number 1: profile: missing; name one of default."),
        ("[[rules]]\nprofile = 'default'", "rules, number 1: sources: expected a list of non-empty strings."),
        ("[[rules]]\nsources = 'x'\nprofile = 'default'", "rules, number 1: sources: expected a list"),
        ("[[rules]]\nsources = []\nprofile = 'default'", "rules, number 1: sources: expected a list"),
        ("[[rules]]\nsources = [' ']\nprofile = 'default'", "rules, number 1: sources: expected a list"),
        (
            "[[rules]]\nsources = ['x']\nprofile = 'default'\nsource = 'y'",
            "rules, number 1: source: unknown key; allowed: sources, profile.",
        ),
        (
            "[[rules]]\nsources = ['x*']\nprofile = 'default'\n"
            "[[rules]]\nsources = ['y', 'X*']\nprofile = 'default'",
            "rules, number 2: sources: 'X*' is a pattern of rule 1 already, which applies.",
        ),
    ],
)
def test_a_fault_is_one_sentence_that_names_the_key(tmp_path: Path, text: str, expected: str) -> None:
    """It says what is allowed; a fault of the syntax names line and column."""
    (problem,) = problems(tmp_path, text)

    assert problem.startswith(expected)
    assert problem.endswith(".")


def test_all_faults_are_reported_together(tmp_path: Path) -> None:
    """As with settings."""
    found = problems(
        tmp_path,
        "[profiles.a]\nkeep_if_adds = 3\nkeep_if_ads = 0.3\n[[rules]]\nsources = ['x']\nprofile = 'b'\n",
    )

    assert len(found) == 3


@pytest.mark.parametrize(("content", "message"), [(None, r"be read \(No such"), (b"\xff", "not UTF-8")])
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, message: str) -> None:
    """The sentence names setting, file and reason."""
    file = tmp_path / "p.toml"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigurationError, match=f"^policy_profiles_file: {file} .*{message}"):
        load_policy_profiles(str(file), Policy())


def test_the_example_is_valid() -> None:
    """deploy/policy-profiles.toml does what its comments say."""
    profiles = load_policy_profiles(str(EXAMPLE), Policy())

    assert profiles.names == ("default", "agency", "newsroom", "republisher")
    assert profiles.select("", "coastline agency").policy.updates_are_new
    assert profiles.select("", "news.mirror.example").name == "republisher"
    assert profiles.select("", "blog.agency-mirror.example").name == "default"


@pytest.mark.parametrize("value", ["-0.1", "nan", "inf"])
def test_a_threshold_without_a_setting_is_a_number_of_its_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """The policy may have thresholds that are no settings; it knows their ranges."""
    monkeypatch.delitem(policy_file._SETTING_FIELDS, "keep_if_adds")
    (problem,) = problems(tmp_path, f"[profiles.a]\nkeep_if_adds = {value}")

    wrong = "is not from 0 to 1" if value == "-0.1" else "is not a number"
    assert problem == f"profiles.a.keep_if_adds: {float(value)} {wrong}."
    assert read(tmp_path, "[profiles.a]\nsame_outlet_hours = 70").named("a").policy.same_outlet_hours == 70


def test_the_default_settings_are_the_default_policy() -> None:
    """Both state the thresholds; a difference would make the documentation wrong."""
    assert load_policies(Settings()).default.policy == Policy()


def test_every_threshold_of_the_settings_reaches_the_policy() -> None:
    """Also one that is 0 or False. Those without a setting, for profiles only, keep their defaults."""
    changed = {
        "duplicate_bits": 2,
        "related_bits": 5,
        "min_containment": 0.3,
        "min_shared_shingles": 7.0,
        "strong_containment": 0.9,
        "updates_are_new": True,
        "keep_if_adds": 0.0,
    }
    policy = load_policies(Settings(policy="hamming", **changed)).default.policy  # type: ignore[arg-type]  # fields of Settings

    assert policy == Policy(name="hamming", **changed)  # type: ignore[arg-type]
    named = {f.name for f in dataclasses.fields(Policy)} & {f.name for f in dataclasses.fields(Settings)}
    assert named == set(changed)
