"""HTTP calls of the harness to one service: verdicts, or refusals with everything that the answer says.

The project's own client retries and hides answers; here each answer counts, so plain HTTP is used.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp

TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """An article that was not acknowledged.

    ``status``: of the HTTP answer; 0: no answer (connection refused or reset, or none within ``TIMEOUT_S``).
    ``sent_s``: monotonic time of the request.
    """

    status: int
    code: str
    sentence: str
    retry_after: str
    sent_s: float

    @property
    def is_explained(self) -> bool:
        """Whether the answer says why, and when to retry. A broken connection needs no explanation."""
        return not self.status or bool(
            self.code and self.sentence and (self.status not in (429, 503) or self.retry_after)
        )

    @property
    def is_final(self) -> bool:
        """Whether a caller takes the answer as a defect of the article."""
        return 400 <= self.status < 500 and self.status not in (408, 429)


class Api:
    """One service by its base URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def submit(self, article: dict[str, str]) -> str:
        """Post an article; its verdict. Raises Refused."""
        return str((await self._call("POST", "/v1/articles", article))["verdict"])

    async def verdict_of(self, id_: str) -> str | None:
        """The stored verdict of an article; None if it is unknown, expired or deleted. Raises Refused."""
        try:
            return str((await self._call("GET", "/v1/articles/" + quote(id_, safe="")))["verdict"])
        except Refused as refused:
            if refused.status in (404, 410):
                return None
            raise

    async def not_ready_reason(self) -> str | None:
        """None if the service is ready, else what it says; "" if it does not answer."""
        try:
            await self._call("GET", "/readyz", headers={"Connection": "close"})
        except Refused as refused:
            return refused.sentence if refused.status else ""
        return None

    async def _call(
        self,
        method: str,
        path: str,
        body: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S), connector=aiohttp.TCPConnector(limit=0)
            )
        sent_s = time.monotonic()
        try:
            async with self._session.request(method, self.url + path, json=body, headers=headers) as response:
                answer = await response.json(content_type=None)
                if response.status < 300:
                    return dict(answer)
                found = answer if isinstance(answer, dict) else {}
                raise Refused(
                    response.status,
                    str(found.get("code", "")),
                    str(found.get("detail", "")),
                    response.headers.get("Retry-After", ""),
                    sent_s,
                )
        except (aiohttp.ClientError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
            raise Refused(0, "", f"{type(error).__name__}: {error}", "", sent_s) from error
