"""Stored articles of an index that the settings do not read: not ready, doctor, migrate, ready."""

from __future__ import annotations

import asyncio
import json
import os
import random
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from aggregator.app import open_background, open_service
from aggregator.cli import main
from aggregator.domain import Article
from aggregator.errors import NotFound
from aggregator.settings import load
from tests.support.hang_limit import HANG_LIMIT_S
from tests.support.server_fixture import serving
from tests.support.store_steps import scan

ARTICLES = 300
NOUNS = (
    "harbor council ferry bridge market school river museum budget festival road tram storm hospital library "
    "election farm factory police court union airport train station theater stadium energy water"
)
ACTIONS = "opens closes plans delays approves rejects repairs sells builds reviews funds inspects"
WORDS, VERBS = NOUNS.split(), ACTIONS.split()


def english_text(seed: int) -> str:
    """Twelve sentences of English words, so that a model can be fitted to such texts."""
    rng = random.Random(seed)
    return " ".join(
        f"The {rng.choice(WORDS)} {rng.choice(VERBS)} the {rng.choice(WORDS)} {rng.randrange(1000)} near the "
        f"{rng.choice(WORDS)} while the {rng.choice(WORDS)} {rng.choice(VERBS)} its {rng.choice(WORDS)}."
        for _ in range(12)
    )


TEXTS = {f"a{n}": english_text(n) for n in range(ARTICLES)}


async def command(*arguments: str) -> int:
    """The exit code of a command, whose event loop runs in a separate thread."""
    return await asyncio.to_thread(main, arguments)


def write_articles(path: Path) -> str:
    """A file with all articles; its name."""
    rows = ({"id": id_, "title": id_, "text": text, "lang": "en"} for id_, text in TEXTS.items())
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def other_model(tmp_path: Path) -> str:
    """The directory of a model fitted to the articles."""
    (tmp_path / "models").mkdir()
    out = tmp_path / "models" / "en.model"
    options = ["--group", "en", "--components", "64", "--no-progress"]
    assert main(["fit", write_articles(tmp_path / "corpus.jsonl"), "--out", str(out), *options]) == 0
    return str(out.parent)


def as_options(settings: dict[str, str]) -> list[str]:
    """Settings as command-line options."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]


async def get(url: str) -> tuple[int, Any]:
    """Status and body."""
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


async def until_status(url: str, wanted: int) -> str:
    """Repeat the request until it has this status; its body."""
    async with asyncio.timeout(HANG_LIMIT_S):
        while True:
            status, body = await get(url)
            if status == wanted:
                return str(body)
            await asyncio.sleep(0.05)


@pytest.mark.services
async def test_articles_of_other_settings_are_reported_and_carried_over(
    valkey_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    other_model: str,
) -> None:
    """300 articles: named by readiness and doctor, then found under their ids; the same when going back."""
    settings = {"models_dir": other_model}
    store, articles = ("--store", valkey_url), write_articles(tmp_path / "articles.jsonl")
    environment = pytest.MonkeyPatch()
    environment.setenv("AGGREGATOR_STORE_TEXTS", "true")
    quiet = ("--out", os.devnull, "--no-progress")
    try:
        assert await command("ingest", *store, *as_options(settings), *quiet, articles) == 0
        capsys.readouterr()
        assert await command("ingest", *store, *quiet, articles) == 2
        assert "about 300 articles" in capsys.readouterr().err, "it stores nothing next to them"

        async with serving(store_url=valkey_url, log_level="ERROR") as url:
            status, body = await get(f"{url}/readyz")
            detail = json.loads(body)["detail"]
            assert status == 503
            assert "The store holds about 300 articles (arrived 2" in detail
            assert "another models_dir, which a note of `aggregator doctor` names" in detail
            assert "restart this service with migration_models_dir set" in detail
            assert str(tmp_path) not in detail
            assert "`aggregator migrate`" in detail
            assert (await get(f"{url}/v1/articles/a7"))[0] == 503, "not 404"
            assert 'aggregator_not_ready{check="unread_index"} 1' in (await get(f"{url}/metrics"))[1]
            assert "aggregator_unread_articles 300" in (await get(f"{url}/metrics"))[1]

            port = f"--port={url.rpartition(':')[2]}"
            assert await command("doctor", "--store-url", valkey_url, port) == 1
            found = capsys.readouterr().out
            assert (
                f"wrong  index     {detail.replace('r doctor', f'r doctor {port}'.replace('=', ' '))}"
                in found
            )
            assert f"models_dir={other_model}." in found
            assert await command("migrate", *store, "--no-progress") == 0
            assert "300 articles examined, 0 could not be copied" in capsys.readouterr().err

            await until_status(f"{url}/readyz", 200)
            await until_status(f"{url}/v1/articles/a7", 200)
            async with aiohttp.ClientSession() as session:
                body = {"id": "again", "text": TEXTS["a8"], "lang": "en"}
                async with session.post(f"{url}/v1/articles", json=body) as response:
                    answer = await response.json()
            assert (answer["verdict"], answer["duplicate_of"]["id"]) == ("duplicate", "a8")
            assert await command("doctor", "--store-url", valkey_url, port) == 0
            assert "frees its memory; within 8 days of the switch this makes" in capsys.readouterr().out

        async with open_service(load(overrides={"store_url": valkey_url, **settings})) as service:
            problem = await service.articles.foreign_index.check()
            assert problem is not None
            assert "about 300 articles" in problem  # the exact copy shares entries
        assert await command("migrate", *store, *as_options(settings), "--no-progress") == 0
        async with open_service(load(overrides={"store_url": valkey_url, **settings})) as service:
            assert await service.articles.foreign_index.check() is None
            assert (await service.articles.index.articles.get("again")).outcome.verdict == "duplicate"
    finally:
        environment.undo()


@pytest.mark.services
async def test_without_texts_nothing_is_said_to_be_copied(
    valkey_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], other_model: str
) -> None:
    """Exit code 1 and the reason; a file has the texts; deletion is the way out without one."""
    store, articles = ("--store", valkey_url), write_articles(tmp_path / "articles.jsonl")
    options = ("--models-dir", other_model, "--out", os.devnull, "--no-progress")
    assert await command("ingest", *store, *options, articles) == 0

    capsys.readouterr()
    assert await command("migrate", *store, "--no-progress") == 1
    said = capsys.readouterr().err
    left = "300 could not be copied (a0, a1, a2, a3, a4, ...): their text is not stored; pass a FILE"
    assert left in said
    assert await command("migrate", *store, "--no-progress", articles) == 0
    capsys.readouterr()
    assert await command("migrate", *store, "--no-progress") == 0, "nothing is left to copy"
    assert "next 5. `aggregator migrate --delete " in capsys.readouterr().err

    async with open_service(load(overrides={"store_url": valkey_url})) as service:
        (left,) = [
            space for space in await service.articles.foreign_index.leftovers() if space.startswith("en.")
        ]
        (own,) = [space for space in service.articles.index.spaces if space.startswith("en.")]
        recent = await service.articles.index.stream.recent(ARTICLES)
        assert {(item.id, item.space) for item in recent} == {(id_, own) for id_ in TEXTS}
        arrivals = await service.articles.index.arrival_counts.update(service.clock())
        assert arrivals.total == ARTICLES
    async with open_background(
        load(overrides={"store_url": valkey_url}), service.analysis.layout
    ) as background:
        await background.source_collector.run_once()
        assert (await background.source_collector.directory.report()).articles == ARTICLES
    assert await command("migrate", *store, "--delete", own, "--yes") == 2, "it is in use"
    assert await command("migrate", *store, "--delete", left, "--yes") == 0
    async with open_service(load(overrides={"store_url": valkey_url})) as service:
        assert not await scan(service.store, b"{%s" % left.encode())
        assert not await scan(service.store, b"r:%s:" % left.encode())
        assert (await service.articles.index.articles.get("a7")).outcome.verdict == "new"


@pytest.mark.services
async def test_what_the_former_version_stores_and_deletes_meanwhile_is_carried_over(
    valkey_url: str, other_model: str
) -> None:
    """It serves during the copy; a second run copies the rest, and until then it is reported."""
    former = load(overrides={"store_url": valkey_url, "models_dir": other_model, "store_texts": True})
    present = load(overrides={"store_url": valkey_url, "store_texts": True})
    articles = [Article(id=id_, text=text, lang="en") for id_, text in list(TEXTS.items())[:20]]
    async with open_service(former) as serving_one:
        for article in articles:
            await serving_one.articles.ingest.submit(article)
        assert await command("migrate", "--store", valkey_url, "--no-progress") == 0
        async with open_service(present) as service:
            assert await service.articles.foreign_index.check() is None

        await serving_one.articles.ingest.delete("a3")
        await serving_one.articles.ingest.submit(Article(id="a4", text=english_text(900), lang="en"))
        await serving_one.articles.ingest.submit(Article(id="late", text=english_text(901), lang="en"))
    async with open_service(present) as service:
        assert "about 20 articles" in str(await service.articles.foreign_index.check())
    assert await command("migrate", "--store", valkey_url, "--no-progress") == 0

    async with open_service(present) as service:
        assert await service.articles.foreign_index.check() is None
        assert (await service.articles.index.articles.get("late")).record.text_hash
        with pytest.raises(NotFound):
            await service.articles.index.articles.get("a3")
        moved = await service.articles.ingest.submit(Article(id="x4", text=english_text(900), lang="en"))
        assert moved.outcome.match is not None
        assert moved.outcome.match.id == "a4"
