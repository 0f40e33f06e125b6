"""Problems of a text that an extractor delivered: no text, cut, markup, another language than declared. Pure.

A text counts as cut if words follow the last sentence end of its last line, or if it ends with "read more" or
the sentence "more to follow". Below a long text "Read more", links after "More:" and copyright do not count.
"""

from __future__ import annotations

import re

from aggregator.analysis.text.language import UNDETERMINED, language_from_tag
from aggregator.analysis.text.lexicon import table
from aggregator.analysis.text.markup import has_markup
from aggregator.analysis.text.normalization import UNSPACED_SCRIPTS, fold, unaccented
from aggregator.domain import NO_PROBLEM, Problem

MIN_UNFINISHED_WORDS = 6
MIN_LINE_WORDS = 12  # a shorter last line without a sentence end is a byline, credit or caption
UNSPACED_CHARS_PER_WORD = 2
_TAIL_CHARS, _TEASER_CHARS, _LONG_CHARS = 400, 80, 1_200  # the last: 200 words
_SENTENCE_END = re.compile("[.!?؟۔।。！？｡။។](?:(?<=[。！？｡။។])|[\\s\"'”’»›）)\\]」』]*(?=\\s|$))")
_OMISSION = re.compile(r"(?:\.\.\.|…|\[\+\d+ chars)[\W_]*$", re.IGNORECASE)
_PART_END = re.compile(rf"{_SENTENCE_END.pattern}|[\n(\[【—–|]")
_TEASERS = tuple(unaccented(fold(phrase)) for phrase in table("teaser", ""))
_MORE, _TEASER = ("|".join(table(section, "")) for section in ("more", "teaser"))
_TEXT_END = rf"(?is)(\n(?=\W{{0,8}}(?:{_MORE}|{_TEASER})[:：])|{_SENTENCE_END.pattern})\W{{0,8}}"
_FOOTER = re.compile(rf"{_TEXT_END}((?:{_MORE}|{_TEASER})[:：]|(?:{_MORE})\W*$|©|\(c\)\W|copyright\b).*")
_NOTICES = frozenset(unaccented(fold(phrase)) for phrase in table("continuation", ""))
_UNSPACED = re.compile(f"[{UNSPACED_SCRIPTS}]")


def text_problems(text: str, lang: str, declared: str | None, had_markup: bool = False) -> Problem:
    """What is wrong with a text in ``lang``; ``declared``: the language tag that it came with."""
    found = Problem.cut if is_cut(text, lang) else NO_PROBLEM if text.strip() else Problem.empty
    if had_markup or has_markup(text):  # a union of flags takes 1 us
        found |= Problem.markup
    tagged = language_from_tag(declared) if declared else None
    return found | Problem.other_language if tagged and lang not in (tagged, UNDETERMINED) else found


def is_cut(text: str, lang: str) -> bool:
    """Whether a text ends before its end."""
    tail = text[-_TAIL_CHARS:]
    tail = (tail if len(text) < _LONG_CHARS else _FOOTER.sub(r"\1", tail)).rstrip()
    last = tail[-_TEASER_CHARS:]
    end = unaccented(fold(re.sub(r"[\W_]+$", "", last)))
    if _OMISSION.search(last) or end.endswith(_TEASERS) or _PART_END.split(end)[-1].strip(" ¡*•") in _NOTICES:
        return True
    earlier, _, last_line = tail.rpartition("\n")
    unfinished = _SENTENCE_END.split(last_line)[-1]
    least = MIN_LINE_WORDS if earlier and unfinished == last_line else MIN_UNFINISHED_WORDS
    words = len(unfinished.split()) + len(_UNSPACED.findall(unfinished)) // UNSPACED_CHARS_PER_WORD
    is_open = tail[-1:].isalnum() or tail[-1:] in ",:-–—、，"
    return is_open and words >= least and lang not in ("th", "lo")
