"""One base class of all errors, and what an error carries."""

from __future__ import annotations

import inspect

import pytest

from aggregator import errors
from aggregator.errors import AggregatorError, ConfigurationError, InvalidInput

CLASSES: dict[str, type[Exception]] = {
    name: class_
    for name, class_ in inspect.getmembers(errors, inspect.isclass)
    if issubclass(class_, Exception) and class_.__module__ == errors.__name__
}


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "AggregatorError"])
def test_every_error_is_caught_by_the_base_class(name: str) -> None:
    """One ``except`` clause catches all, and the message is the given sentence."""
    with pytest.raises(AggregatorError) as caught:
        raise CLASSES[name]("The bridge is closed.")

    assert str(caught.value) == "The bridge is closed."


def test_invalid_input_names_the_field_or_none() -> None:
    """The field is not part of the message."""
    error = InvalidInput("title: too long.", field="title")

    assert (str(error), error.field) == ("title: too long.", "title")
    assert InvalidInput("Nothing was sent.").field is None


def test_a_configuration_error_lists_every_problem() -> None:
    """A single text is one problem, not a list of characters."""
    assert ConfigurationError("port: too large").problems == ["port: too large"]
    assert str(ConfigurationError(["port: too large", "host: empty"])) == "port: too large; host: empty"


def test_the_problems_of_an_error_do_not_change_with_the_given_list() -> None:
    """The caller may keep using its list."""
    given = ["port: too large"]
    error = ConfigurationError(given)
    given.append("host: empty")

    assert error.problems == ["port: too large"]
