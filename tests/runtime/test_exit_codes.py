"""Exit codes of processes and commands."""

from __future__ import annotations

import pytest

from aggregator import errors
from aggregator.errors import exit_code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.StoreUnavailable("down"), 3),
        (errors.CommitConflict("lost"), 3),
        (errors.NotFound("a1"), 1),
        (errors.Expired("a1"), 1),
        (errors.InvalidInput("text: empty."), 2),
        (errors.InputTooLarge("line"), 2),
        (errors.ConfigurationError("port"), 2),
        (errors.ModelError("en"), 2),
    ],
)
def test_scripts_can_tell_failures_apart(error: errors.AggregatorError, code: int) -> None:
    """1: nothing stored, 2: wrong input or settings, 3: a later attempt may succeed."""
    assert exit_code(error) == code


def test_no_error_exits_with_0() -> None:
    """Also errors that are added later."""

    def subclasses(of: type[errors.AggregatorError]) -> list[type[errors.AggregatorError]]:
        return [of, *(found for direct in of.__subclasses__() for found in subclasses(direct))]

    kinds = subclasses(errors.AggregatorError)
    assert len(kinds) > 15
    assert {exit_code(kind("x")) for kind in kinds} == {1, 2, 3}
