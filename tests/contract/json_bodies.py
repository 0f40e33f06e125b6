"""Hypothesis strategy for request bodies: any bytes, JSON, and objects with the fields of an article."""

from __future__ import annotations

import json
from datetime import datetime

from hypothesis import strategies as st

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(
    ["id", "url", "title", "text", "html", "source", "published_at", "lang", "ids", "a", "b", "x"]
)
article_bodies = st.dictionaries(names, json_values | st.datetimes().map(datetime.isoformat), max_size=6).map(
    lambda value: json.dumps(value).encode("utf-8", "surrogatepass")
)
any_bodies = st.binary(max_size=200) | article_bodies | json_values.map(lambda v: json.dumps(v).encode())
