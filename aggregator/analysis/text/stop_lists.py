"""Stop words of all languages for jusText, which trafilatura runs on some pages, as a table of hashes.

trafilatura keeps the 154,484 words of jusText's 100 lists in a tuple and in a set, 33 MB with what loading
them leaves behind, and jusText hashes the tuple for each page: 11 ms. The table takes 4 MB; a word takes 1 us
more. The answers are the same, since no two of the words have one hash.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Any

from xxhash import xxh3_64_intdigest

# Slots per word, at least; a look-up then reads 1.2 slots for a word of the list, 1.5 for another one.
_SLOTS_PER_WORD = 3


class HashedWords:
    """A set of words, for membership tests: open addressing with linear probing."""

    def __init__(self, words: Iterable[str]) -> None:
        hashes = {xxh3_64_intdigest(word) for word in words}
        self._mask = (1 << (len(hashes) * _SLOTS_PER_WORD).bit_length()) - 1
        self._slots = array("Q", bytes(8 * (self._mask + 1)))  # 0: empty
        for hashed in hashes:
            self._slots[self._slot(hashed)] = hashed

    def __contains__(self, word: str) -> bool:
        hashed = xxh3_64_intdigest(word)
        return self._slots[self._slot(hashed)] == hashed

    def _slot(self, hashed: int) -> int:
        """Return the slot of a hash, or the empty one where it would be stored."""
        slots, mask = self._slots, self._mask
        slot = hashed & mask
        while (found := slots[slot]) and found != hashed:
            slot = (slot + 1) & mask
        return slot


def replace_stop_lists(trafilatura_external: Any, justext_core: Any, justext_utils: Any) -> None:
    """Make these modules of trafilatura and jusText use one table instead of sets. Idempotent."""
    if isinstance(trafilatura_external.JT_STOPLIST, HashedWords):
        return
    trafilatura_external.JT_STOPLIST = HashedWords(
        word for name in sorted(justext_utils.get_stoplists()) for word in justext_utils.get_stoplist(name)
    )
    define: Callable[[Any], Any] = justext_core.define_stoplist
    # It makes a set of a list of words, and would need the words.
    justext_core.define_stoplist = lambda words: words if isinstance(words, HashedWords) else define(words)
