"""JSON responses and the Server-Timing header."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from aggregator.http.json_response import server_timing, struct_response


class Answer(Struct):
    name: str
    count: int | None = None


def test_a_struct_is_one_line_of_json() -> None:
    """In UTF-8, without a charset parameter, which JSON does not define."""
    response = struct_response(Answer("渡轮\n"), 201, {"Location": "/v1/answers/1"})

    assert isinstance(response.body, bytes)
    assert json.loads(response.body) == {"name": "渡轮\n", "count": None}
    assert response.body.endswith(b"}\n")
    assert response.body.count(b"\n") == 1
    assert response.headers["Content-Type"] == "application/json"
    assert (response.status, response.headers["Location"]) == (201, "/v1/answers/1")


def test_no_timings_are_no_header() -> None:
    """An empty Server-Timing header would be invalid."""
    assert server_timing({}) == {}


def test_stages_keep_their_order_and_have_two_decimals() -> None:
    """The order of processing, in milliseconds."""
    assert server_timing({"lookup": 0.5, "analyse": 1.256}) == {
        "Server-Timing": "lookup;dur=0.50, analyse;dur=1.26"
    }


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=20), st.floats(min_value=0, max_value=1e6), min_size=1, max_size=4
    )
)
def test_any_stage_name_gives_a_valid_header(timings_ms: dict[str, float]) -> None:
    """Separators and line breaks in a name cannot add a metric or a header."""
    parts = server_timing(timings_ms)["Server-Timing"].split(", ")

    assert len(parts) == len(timings_ms)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+;dur=\d+\.\d\d", part) for part in parts)
