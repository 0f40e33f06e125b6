"""Figures of an event over time: how many dead or missing its headlines say, and who said it first. Pure.

A number belongs to a word of the lexicon (``toll``) that it is next to, or with words between that link
them (``toll_link``): "12 people dead", "death toll rises to 12", "12人死亡". From a word of counting
(``toll_count``) to a number behind ``toll_to`` all words link: "death toll in Vellmark rises to 12". Ages,
times, years, decimals and amounts (``toll_not`` and ``unit``: words behind them) belong to none. A toll of
which the headline does not say what it counts ("Toll climbs to 12") is that of the dead if others count dead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from operator import itemgetter

from aggregator.analysis.source import outlet_key
from aggregator.analysis.text.lexicon import table
from aggregator.analysis.text.normalization import fold, numerals_in_digits
from aggregator.analysis.text.spelling import compared_form, normalize_spelling, without_umlauts
from aggregator.analysis.text.tokenizer import shingle_units

MIN_OUTLETS, MAX_VALUES = 2, 12
MAY_FALL = ("missing", "trapped", "hostages", "ill", "hospitalized")  # of others a lower number is older
TOLL = "toll"  # of a headline that does not say of what
_CLAUSE = re.compile(r"[,;:!?()|，；：、。！？（）—–]\s*(?!\d)|\.\s|\s-\s")
_KOREAN_COUNTER = re.compile("(?<=[0-9])(?=[가-힣])")
_UNCOUNTED = re.compile(
    r"(?<!\d)(?:\d+[.,]\d{1,2}(?!\d)|(?:19|20)\d\d(?!\d)|\d+(?=\s?[%$€£¥]|[-–][^\W\d]))|[$€£¥]\s?[\d.,]+|死傷"
)

Said = tuple[int, str, Mapping[str, int]]  # when, where and what one headline says: the number of each kind
# A number, when and where it was reported first, and how many outlets have reported it.
Figure = tuple[int, int, str, int]
Toll = tuple[int, str, int]  # when it was reported first, or arrived, in ms, kind, number


def figures_over_time(headlines: Iterable[Said], known: Sequence[Toll] = ()) -> dict[str, list[Figure]]:
    """By kind that two outlets count: its numbers in order of their first report, the last ones.

    A ``known`` toll whose first outlet says another number by now is without outlet at that time.
    """
    found = _reports(headlines)
    counted = [kind for kind, values in found.items() if _outlets(chain(*values.values())) >= MIN_OUTLETS]
    counted += [kind for _, kind, _ in known if kind not in counted]
    series = {k: {n: (n, *r[0], _outlets(r)) for n, r in found.get(k, {}).items()} for k in counted}
    for at_ms, kind, number in known:
        _, first_ms, _, outlets = series[kind].get(number, (0, at_ms + 1, "", 0))
        if at_ms < first_ms:
            series[kind][number] = number, at_ms, "", outlets
    return {kind: sorted(values.values(), key=itemgetter(1))[-MAX_VALUES:] for kind, values in series.items()}


def new_tolls(headlines: Iterable[Said], known: Sequence[Toll]) -> list[Toll]:
    """What two outlets report: larger numbers than known, or corrections; if the kind may fall, later ones.

    A lower number corrects one that two outlets had reported before if more outlets report it since.
    """
    old = {each[1:] for each in known}
    last, found = {kind: number for _, kind, number in known}, list[Toll]()
    for kind, values in _reports(headlines).items():
        toll, steps, is_later = last.get(kind, 0), list[Toll](), last.get(kind, 0) not in values
        for number, reports in values.items():
            before = [report for report in values.get(toll, ()) if report[0] < reports[0][0]]
            since = values.get(toll, [])[len(before) :]
            corrects = _outlets(before) >= MIN_OUTLETS and _outlets(reports) > _outlets(since)
            is_larger = is_later and (kind, number) not in old if kind in MAY_FALL else number > toll
            is_later |= number == toll
            if _outlets(reports) >= MIN_OUTLETS and (is_larger or corrects):
                toll = number
                steps.append((reports[0][0], kind, toll))
        if toll != last.get(kind, 0):
            found += [step for step in steps if step is steps[-1] or step[1:] not in old]
    return found


def _reports(headlines: Iterable[Said]) -> dict[str, dict[int, list[tuple[int, str]]]]:
    """By kind and number, in order of first reports: when and where it was reported."""
    found: dict[str, dict[int, list[tuple[int, str]]]] = {}
    in_order = sorted(headlines, key=lambda said: said[0])
    counts_dead = any("dead" in figures for *_, figures in in_order)
    for at_ms, source, figures in in_order:
        for kind, value in _resolved(figures, counts_dead).items():
            found.setdefault(kind, {}).setdefault(value, []).append((at_ms, source))
    return found


def _outlets(reports: Iterable[tuple[int, str]]) -> int:
    return len({outlet_key(by) for _, by in reports})


@lru_cache(maxsize=4096)
def figures_in(title: str, lang: str) -> dict[str, int]:
    """The number of each kind that a headline says, the first one.

    >>> figures_in("Quake kills at least 12 people, 1,200 injured; man, 32, dead", "en")
    {'dead': 12, 'injured': 1200}
    """
    found: dict[str, int] = {}
    kinds, nots, counts, tos, now = (_words(s, lang) for s in ("", "_not", "_count", "_to", "_now"))
    links = _words("_link", lang) | now
    plain, units = without_umlauts(fold(title)), table("unit", lang)
    is_counting = any(word in plain for word in kinds)  # else, mostly, in 1/20 of the time
    for clause in _CLAUSE.split(_UNCOUNTED.sub(" ", numerals_in_digits(title))) if is_counting else ():
        said = shingle_units(_KOREAN_COUNTER.sub(" ", clause), lang)
        words = [word for word, after in pairwise([*said, ""]) if not word.isdecimal() or after not in units]
        words = words if lang == "ko" else normalize_spelling(words, lang)  # of Korean it has syllables
        pairs = [*pairwise([*words, ""])]
        free = {i for i, (w, after) in enumerate(pairs) if w.isdecimal() and len(w) < 8 and after not in nots}
        linked = {i for i, word in enumerate(words) if word in links}
        linked |= {i + n for i, pair in enumerate(pairs) if " ".join(pair) in links for n in range(2)}
        count = next((i for i, word in enumerate(words) if word in counts), None)
        to = next((i for i in sorted(free) if i and words[i - 1] in tos), None)
        if count is not None and to is not None:  # "death toll in Vellmark rises to 9"
            linked.update(range(min(count, to + 1), max(count + 1, to)))
        again = {*found} if now.keys() & words else set()  # "toll passes 100, now 113"
        if again and len(free) == 1 and len(linked | free) == len(words):
            found |= {[*found][-1]: number for i in free if (number := int(words[i]))}
        for position, kind in sorted(enumerate(map(kinds.get, words)), key=lambda at: at[1] == TOLL):
            for step in (-1, 1) if kind and (kind in again or kind not in found) else ():
                at = position + step
                while at in linked:
                    at += step
                if at in free and int(words[at]):
                    free.remove(at)
                    again.discard(kind)
                    found[str(kind)] = int(words[at])
                    break
    return found


def newer_figures(title: str, lang: str, known: Sequence[Toll]) -> dict[str, int]:
    """The last toll of the kinds of which a headline says a lower number, or an earlier toll."""
    said = _resolved(figures_in(title, lang), True).items() if known else ()
    last, old = {kind: toll for _, kind, toll in known}, {toll[1:] for toll in known}
    return {k: last[k] for k, n in said if n < last.get(k, 0) or (n != last.get(k) and (k, n) in old)}


def _resolved(figures: Mapping[str, int], counts_dead: bool) -> dict[str, int]:
    """The figures with the toll as that of the dead, 12 of "Toll rises to 12 after 2 die", or without it."""
    dead = max(figures.get("dead", 0), figures.get(TOLL, 0) * counts_dead)
    return {kind: n for kind, n in figures.items() if kind != TOLL} | ({"dead": dead} if dead else {})


@lru_cache(maxsize=128)
def _words(kind: str, lang: str) -> dict[str, str]:
    return {compared_form(word, lang): value for word, value in table(f"toll{kind}", lang).items()}
