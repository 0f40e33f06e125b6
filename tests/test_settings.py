"""Settings: sources and precedence, validation, and all problems in one error."""

from __future__ import annotations

import dataclasses

import pytest

from aggregator.errors import ConfigurationError
from aggregator.settings import ENV_PREFIX, Settings, load
from tests.project.settings_table import markdown_tables


def problems(environment: dict[str, str], overrides: dict[str, object] | None = None) -> list[str]:
    """The problems of the ConfigurationError that ``load`` raises for an invalid configuration."""
    with pytest.raises(ConfigurationError) as refusal:
        load(environment, overrides)
    return refusal.value.problems


def test_an_empty_configuration_gives_the_defaults() -> None:
    """Variables without the prefix are ignored."""
    assert load({"PATH": "/bin", "PORT": "x"}) == Settings()


def test_the_command_line_takes_precedence_over_the_environment() -> None:
    """An option with the value None does not override the variable."""
    environment = {"AGGREGATOR_PORT": "9000", "AGGREGATOR_HOST": "::1"}

    chosen = load(environment, {"port": "9001", "host": None})

    assert (chosen.port, chosen.host) == (9001, "::1")


def test_redis_url_is_read_with_lower_precedence() -> None:
    """Platforms set REDIS_URL; AGGREGATOR_STORE_URL and --store-url take precedence over it."""
    redis = {"REDIS_URL": "redis://a:6379/0"}
    own = {**redis, "AGGREGATOR_STORE_URL": "redis://b:6379/0"}

    assert load(redis).store_url == "redis://a:6379/0"
    assert load(own).store_url == "redis://b:6379/0"
    assert load(own, {"store_url": ""}).store_url == ""
    assert load({"REDIS_URL": ""}).store_url == ""


def test_all_problems_are_reported_in_one_error_with_their_origin() -> None:
    """One restart is enough to correct a configuration."""
    reported = problems(
        {"AGGREGATOR_PORT": "http", "AGGREGATOR_POLICY": "strict", "AGGREGATOR_PROT": "1"}, {"workers": "0"}
    )

    assert len(reported) == 4
    assert any(p.startswith("AGGREGATOR_PORT: 'http' is not a whole number") for p in reported)
    assert any(p.startswith("AGGREGATOR_POLICY: 'strict' must be one of verified, hamming") for p in reported)
    assert any(p.startswith("AGGREGATOR_PROT: unknown setting") for p in reported)
    assert any(p.startswith("--workers: 0 must be a number from 1 to 64") for p in reported)


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
def test_an_invalid_value_is_one_sentence_that_names_the_setting(name: str, value: str) -> None:
    """Never a traceback, never a silent default."""
    reported = problems({ENV_PREFIX + name.upper(): value})

    assert len(reported) == 1
    assert name in reported[0].lower()
    assert reported[0].endswith(".")


def test_the_password_of_a_store_is_never_shown() -> None:
    """Problems are printed and logged."""
    reported = problems({"REDIS_URL": "http://:geheim@example.org"})

    assert "geheim" not in " ".join(reported)


def test_contradicting_bounds_are_rejected() -> None:
    """The bound of related must be at least that of duplicate."""
    reported = problems({}, {"duplicate_bits": "5", "related_bits": "4"})

    assert reported == ["related_bits (4) must not be below duplicate_bits (5)."]


@pytest.mark.parametrize("faulty", ["trusted_proxies", "trusted_proxy"])
def test_combinations_are_checked_in_the_same_run(faulty: str) -> None:
    """Except with a setting that is faulty or mistyped itself: its value is unknown."""
    names = {faulty: "127.0.0.300", "user_header": "X-User", "smtp_sender": "desk@news.example"}
    named = {"AGGREGATOR_" + name.upper(): value for name, value in names.items()}
    reported = problems(named, {"duplicate_bits": "5", "related_bits": "4"})

    assert len(reported) == 3
    assert reported[0].startswith(f"AGGREGATOR_{faulty.upper()}: ")
    assert reported[1:] == [
        "related_bits (4) must not be below duplicate_bits (5).",
        "smtp_url and smtp_sender: set both, or neither.",
    ]


@pytest.mark.parametrize(
    ("word", "value"), [("yes", True), ("ON", True), ("1", True), ("off", False), ("no", False)]
)
def test_booleans_have_several_spellings(word: str, value: bool) -> None:
    """yes, on, 1 and true; case does not matter."""
    assert load({"AGGREGATOR_STORE_TEXTS": word}).store_texts is value


def test_every_setting_is_documented_and_its_default_is_valid() -> None:
    """The generated table has one row for each."""
    table = markdown_tables()

    for option in dataclasses.fields(Settings):
        assert f"`{ENV_PREFIX}{option.name.upper()}`" in table
        assert option.metadata["doc"]
        check = option.metadata["check"]
        assert check is None or check(option.default)


def test_a_unix_socket_needs_an_absolute_path() -> None:
    """redis-py takes the first part of a relative path for a host; only user and password may precede it."""
    for whole in ("unix:///run/a.sock", "unix://me:geheim@/run/a.sock?db=1"):
        assert load({}, {"store_url": whole}).store_url == whole
    with pytest.raises(ConfigurationError, match=r"expected the absolute path of the socket"):
        load({}, {"store_url": "unix://var/store.sock"})
