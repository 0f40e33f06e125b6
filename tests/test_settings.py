"""settings.py: where values come from, what is refused, and that all problems show at once."""

from __future__ import annotations

import dataclasses

import pytest

from aggregator.errors import ConfigurationError
from aggregator.settings import ENV_PREFIX, PRESETS, Settings, load, markdown_table


def problems(environment: dict[str, str], overrides: dict[str, object] | None = None) -> list[str]:
    """What is said about a configuration that cannot work."""
    with pytest.raises(ConfigurationError) as refusal:
        load(environment, overrides)
    return refusal.value.problems


def test_nothing_given_means_the_defaults() -> None:
    """Other people's variables are none of our business."""
    assert load({"PATH": "/bin", "PORT": "x"}) == Settings()


def test_the_command_line_wins_over_the_environment() -> None:
    """An option that was not given (None) leaves the variable in force."""
    environment = {"AGGREGATOR_PORT": "9000", "AGGREGATOR_HOST": "::1"}

    chosen = load(environment, {"port": "9001", "host": None})

    assert (chosen.port, chosen.host) == (9001, "::1")


def test_redis_url_is_honoured_below_our_own_variable() -> None:
    """REDIS_URL is what platforms set; AGGREGATOR_STORE_URL and --store-url are meant for us."""
    redis = {"REDIS_URL": "redis://a:6379/0"}
    own = {**redis, "AGGREGATOR_STORE_URL": "redis://b:6379/0"}

    assert load(redis).store_url == "redis://a:6379/0"
    assert load(own).store_url == "redis://b:6379/0"
    assert load(own, {"store_url": ""}).store_url == ""
    assert load({"REDIS_URL": ""}).store_url == ""


def test_all_problems_are_told_at_once_each_with_its_origin() -> None:
    """One restart is enough to mend a configuration."""
    told = problems(
        {"AGGREGATOR_PORT": "http", "AGGREGATOR_POLICY": "strict", "AGGREGATOR_PROT": "1"}, {"workers": "0"}
    )

    assert len(told) == 4
    assert any(p.startswith("AGGREGATOR_PORT: 'http' is not a whole number") for p in told)
    assert any(p.startswith("AGGREGATOR_POLICY: 'strict' must be one of verified, hamming") for p in told)
    assert any(p.startswith("AGGREGATOR_PROT: there is no such setting") for p in told)
    assert any(p.startswith("--workers: 0 must be a number from 1 to 64") for p in told)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "65536"),
        ("port", "-1"),
        ("port", "80.5"),
        ("port", ""),
        ("retention_days", "nan"),
        ("retention_days", "inf"),
        ("burst_window_hours", "0"),
        ("store_texts", "maybe"),
        ("duplicate_bits", "8"),
        ("store_url", "localhost:6379"),
        ("store_url", "memory2"),
        ("store_url", "redis://"),
        ("host", ""),
        ("data_dir", ""),
        ("data_dir", "a\0b"),
        ("log_level", "info"),
        ("public_url", "news.example"),
        ("public_url", "https://"),
        ("public_url", "https://[news"),
        ("public_url", "https://news.example:port"),
    ],
)
def test_a_wrong_value_is_one_sentence_that_names_the_setting(name: str, value: str) -> None:
    """Never a traceback, never a silent default."""
    told = problems({ENV_PREFIX + name.upper(): value})

    assert len(told) == 1
    assert name in told[0].lower()
    assert told[0].endswith(".")


def test_the_password_of_a_store_is_never_shown() -> None:
    """Problems are printed and logged."""
    told = problems({"REDIS_URL": "http://:geheim@example.org"})

    assert "geheim" not in " ".join(told)


def test_bounds_that_contradict_one_another_are_refused() -> None:
    """Related must reach at least as far as duplicate."""
    told = problems({}, {"duplicate_bits": "5", "related_bits": "4"})

    assert told == ["related_bits (4) must not be below duplicate_bits (5)."]


@pytest.mark.parametrize(
    ("word", "value"), [("yes", True), ("ON", True), ("1", True), ("off", False), ("no", False)]
)
def test_yes_and_no_have_several_spellings(word: str, value: bool) -> None:
    """As in other tools."""
    assert load({"AGGREGATOR_STORE_TEXTS": word}).store_texts is value


def test_every_setting_is_documented_and_its_default_is_valid() -> None:
    """The table of the README has one row for each."""
    table = markdown_table()

    for option in dataclasses.fields(Settings):
        assert f"`{ENV_PREFIX}{option.name.upper()}`" in table
        assert option.metadata["doc"]
        check = option.metadata["check"]
        assert check is None or check(option.default)


def test_a_preset_sets_thresholds_and_what_is_given_itself_wins() -> None:
    """``precise`` asks for more than ``balanced`` in every respect."""
    balanced, precise = load({}), load({}, {"preset": "precise"})

    assert all(getattr(precise, name) > getattr(balanced, name) for name in PRESETS["precise"])
    mixed = load({"AGGREGATOR_PRESET": "precise", "AGGREGATOR_MIN_SHARED_SHINGLES": "50"})
    assert (mixed.min_shared_shingles, mixed.min_containment) == (50.0, precise.min_containment)


def test_a_socket_is_given_by_its_whole_path() -> None:
    """The driver would take the first part of a relative one for a host; a name and a password may stand there."""
    for whole in ("unix:///run/a.sock", "unix://me:geheim@/run/a.sock?db=1"):
        assert load({}, {"store_url": whole}).store_url == whole
    with pytest.raises(ConfigurationError, match=r"give the path of the socket from the root"):
        load({}, {"store_url": "unix://var/store.sock"})


def test_fingerprints_only_needs_the_rule_that_needs_no_more() -> None:
    """Without samples nothing can be verified."""
    with pytest.raises(ConfigurationError, match="needs policy hamming"):
        load({}, {"fingerprints_only": True})
    assert load({}, {"fingerprints_only": True, "policy": "hamming"}).fingerprints_only
