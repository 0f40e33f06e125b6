"""Helpers of the index tests."""

from tests.support.factories import Core


async def seal(newsroom: Core) -> None:
    """Seal the writable segment of the only space."""
    (space,) = newsroom.index.spaces
    segments = newsroom.index.segments
    await segments.seal(space, (await segments.stack(space)).last, newsroom.clock())
