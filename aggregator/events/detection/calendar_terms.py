"""Terms of the calendar: months, days of the week and periods, as English word stems and abbreviations.

They say when something is, not what it is about.
"""

from __future__ import annotations

_WORDS = """
    januari februari march april may june juli august septemb octob novemb decemb jan feb mar apr jun
    jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue wed
    thu fri pct week month quarter year annual
"""

CALENDAR_TERMS = frozenset(_WORDS.split())
