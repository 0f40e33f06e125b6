"""Reader of OPML, the lists of subscriptions that feed readers export."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

from aggregator_client.feed_ids import is_address

HEAD_BYTES = 1024


@dataclass(slots=True)
class Subscriptions:
    """Addresses of feeds in order, each once; ``problem``: why the rest could not be read, or empty."""

    addresses: dict[str, None] = field(default_factory=dict)
    problem: str = ""


def is_opml(data: bytes) -> bool:
    """Whether the first element is ``opml``."""
    return b"<opml" in data[:HEAD_BYTES].replace(b"\0", b"").lower()


def _http_address(address: str) -> str:
    """The address without the scheme ``feed``, as in ``feed://host/path`` or ``feed:https://...``."""
    if address[:5].lower() != "feed:":
        return address
    rest = address[5:]
    return rest if is_address(rest) else f"http:{rest}"


def read_opml(data: bytes) -> Subscriptions:
    """The http or https ``xmlUrl`` of all outlines, at any depth; one that declares entities is not read."""
    found = Subscriptions()

    def start_element(name: str, attributes: dict[str, str]) -> None:
        given = {key.lower(): value for key, value in attributes.items()}.get("xmlurl", "")
        address = _http_address(given.strip())
        if name.rpartition(":")[2].lower() == "outline" and is_address(address):
            found.addresses[address] = None

    def refuse_entity(*declaration: object) -> None:
        raise ValueError("it declares entities")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start_element
    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # LookupError: an unknown encoding
        found.problem = f"the OPML is broken ({error})"
    return found
