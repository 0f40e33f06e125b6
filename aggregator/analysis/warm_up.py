"""Warm-up: loads everything that analysis loads when first needed, for every language.

Dictionaries, stemmers, stop words, language statistics and the HTML extraction are loaded by the first text
that needs them (0.01 to 0.4 s per language). The fork server warms up before it forks, so no worker loads
anything again; a web process before it is ready.
"""

from __future__ import annotations

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.text.language import CANDIDATE_LANGUAGES, UNDETERMINED
from aggregator.analysis.text.stemming import SNOWBALL_LANGUAGES, stemmer
from aggregator.analysis.text.tokenizer import stop_words
from aggregator.domain import Article

# One text per resource: both scripts of Chinese (segmenter, conversion), and one whose language only the
# statistics tell.
_TEXTS = (
    Article(id="", text="The ferry runs again."),
    Article(id="", text="渡轮星期一恢复通航。"),
    Article(id="", text="渡輪星期一恢復通航。"),
    Article(id="", text="Die Fähre nach Estmark fährt am Montag wieder."),
)
_PAGE = Article(
    id="",
    html="<html><head><title>Fähre</title></head><body><article><h1>Fähre</h1>"
    "<p>Die Brücke über den Fluss bleibt wegen des Sturmes geschlossen.</p></article></body></html>",
)


def warm_up(analyzer: Analyzer, *, html: bool = True) -> None:
    """Load the resources of all languages into this process; takes 1 s of processor time. Idempotent.

    ``html``: load the HTML extraction as well (20 MB), for a process that reads pages.
    """
    analyzer.analyze_many([*_TEXTS, _PAGE] if html else _TEXTS)
    for lang in (UNDETERMINED, *CANDIDATE_LANGUAGES, *SNOWBALL_LANGUAGES):
        stop_words(lang)
        if (stem := stemmer(lang)) is not None:
            stem("ferry")
