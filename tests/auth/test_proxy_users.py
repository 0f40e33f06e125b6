"""Roles of the users whom a proxy has signed in."""

import pytest

from aggregator.auth.proxy_users import UserRoles, is_user_name, user_key

RULES = UserRoles.parse("ada@news.example=reader, @news room=editor,@it=admin , *=reader")


@pytest.mark.parametrize(
    ("name", "groups", "role"),
    [
        ("ada@news.example", ["it"], "reader"),  # a rule for the name takes precedence
        ("bob", ["news room"], "editor"),
        ("bob", ["news room", "it", "other"], "admin"),  # the highest role
        ("bob", [], "reader"),
        ("@it", [], "reader"),  # a name is no group
        ("Ada@news.example", ["IT"], "reader"),
        ("*", [], "reader"),
    ],
)
def test_the_rule_that_applies(name: str, groups: list[str], role: str) -> None:
    """Name, then the highest role of the groups, then everybody; compared exactly."""
    assert RULES.role_of(name, groups) == role


def test_without_a_rule_there_is_no_role() -> None:
    """Neither for a name nor for an empty group."""
    assert UserRoles.parse("ada=editor").role_of("bob", ["", "ada"]) is None
    assert UserRoles.parse("").role_of("", [""]) is None


def test_a_user_is_the_same_tomorrow() -> None:
    """The id depends on the name alone and is never that of a key; the permission ends after an hour."""
    today, tomorrow = user_key("ada", "editor", 0), user_key("ada", "admin", 86_400_000)

    assert today.id == tomorrow.id != user_key("bob", "editor", 0).id
    assert today.is_of_user and today.allows("editor") and not today.allows("admin")
    assert today.is_active(3_599_999) and not today.is_active(3_600_000)


@pytest.mark.parametrize("name", ["", "a\nb", "a\x1b[2J", "\udcff", "x" * 101])
def test_names_that_cannot_be_recorded(name: str) -> None:
    """Empty, with control characters or bytes that are not UTF-8, or too long."""
    assert not is_user_name(name)
    assert is_user_name("Ada Лавлейс 王")
