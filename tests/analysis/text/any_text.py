"""Strategies for texts of any characters."""

from __future__ import annotations

from hypothesis import strategies as st

# Any str, lone surrogates included; then characters that are difficult for word splitting.
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
DIFFICULT_TEXT = st.text(
    st.sampled_from(
        "aZé'’ʼ`´.,-_1２٣ \t\n\x00\x1f\x85\u00ad\u200b\u200d\u202e\ufeff\ud800\udfff"
        "中台の・ー가ก้ําहि½ﬁßİΣς́\u0345"
    ),
    max_size=40,
)
