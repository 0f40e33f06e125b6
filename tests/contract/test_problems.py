"""Errors as problem details: statuses, codes and titles."""

from __future__ import annotations

import inspect
from http import HTTPStatus

import pytest

from aggregator import errors
from aggregator.contract.problems import ERRORS, PROBLEM_TITLES, make_problem, to_problem
from aggregator.contract.responses import encode
from aggregator.errors import AggregatorError, InvalidInput
from aggregator_client.wire import Problem

CLASSES = [
    class_
    for _, class_ in inspect.getmembers(errors, inspect.isclass)
    if class_.__module__ == errors.__name__ and class_ is not AggregatorError
]


@pytest.mark.parametrize("class_", CLASSES)
def test_each_error_has_a_problem(class_: type[AggregatorError]) -> None:
    """Its own, or that of a base class."""
    assert any(issubclass(class_, known) for known, *_ in ERRORS)


def test_no_row_hides_a_later_one() -> None:
    """The first matching class decides, so no row may follow one of its base class."""
    classes = [row[0] for row in ERRORS]

    for number, class_ in enumerate(classes):
        assert not issubclass(class_, tuple(classes[:number]))


@pytest.mark.parametrize("class_", CLASSES)
def test_every_error_has_a_code_other_than_internal(class_: type[AggregatorError]) -> None:
    """No error of the package is reported as an unexpected one."""
    problem = to_problem(class_("The pier is closed."))

    assert problem.code != "internal"
    assert problem.title == PROBLEM_TITLES[problem.code]
    assert problem.detail == "The pier is closed."


def test_every_code_belongs_to_one_row() -> None:
    """The code identifies the error for a client."""
    codes = [code for _, _, code, _ in ERRORS]

    assert len(codes) == len(set(codes))


def test_the_field_of_invalid_input_is_named() -> None:
    """Other errors have no field."""
    assert to_problem(InvalidInput("title: too long.", field="title")).field == "title"
    assert to_problem(errors.NotFound("No such article.")).field is None


@pytest.mark.parametrize("error", [ValueError("secret-of-the-store"), AggregatorError("secret-of-the-store")])
def test_an_unexpected_error_reveals_nothing(error: Exception) -> None:
    """Its message is not in the response, only in the log."""
    problem = to_problem(error)

    assert (problem.status, problem.code) == (500, "internal")
    assert b"secret" not in encode(problem)


def test_a_problem_has_only_the_members_that_are_set() -> None:
    """``field``, ``instance`` and ``request_id`` are left out instead of null."""
    problem = make_problem(HTTPStatus.NOT_FOUND, "not_found", "There is no such event.")

    assert problem == Problem(
        "/docs#error-not_found", "Not found", 404, "There is no such event.", "not_found"
    )
    assert b"null" not in encode(problem)
