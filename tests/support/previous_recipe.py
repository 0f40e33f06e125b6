"""A store that an earlier version wrote, and the texts it was made of.

``previous_recipe.jsonl.gz`` holds every key of an embedded store. Commit 5172378 wrote it, the last one with
the recipe ``analyse-2`` (records of format 3, no list of indexes), with ``--keep-texts --retention-days 0``:
``TEXTS`` were posted in order, then ``a1`` was posted again with the text of ``UPDATE``, and ``a2`` deleted.
Each line is ``[key, kind, value]`` in base64; the value of a stream is ``[[id, [field, value, ...]], ...]``.
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

from tests.support.stores import direct_client

FIXTURE = Path(__file__).with_name("previous_recipe.jsonl.gz")
SPACES = ("en.c491", "xx.3c02", "zh.1d01")
_EN = (
    "The harbor council of Ostmark has agreed to rebuild the old fish market beside pier {0}. The "
    "roof leaked for {1} winters, and traders moved their stalls to the car park behind the customs "
    "house. Work starts in spring, costs {2} million crowns and will take two years, said the "
    "mayor, who promised that nobody would lose a stall. The architect wants to keep the brick "
    "arches and the clock, which stopped long ago."
)
_DE = (
    "Die Fähre nach Estmark fährt ab Montag wieder {0} Mal am Tag, teilte die Reederei mit. Nach "
    "dem Sturm lag das Schiff {1} Wochen in der Werft, weil Wasser in den Maschinenraum gelaufen "
    "war. Der Ersatzverkehr mit Bussen kostete {2} Millionen Kronen, von denen die Versicherung die "
    "Hälfte bezahlt. Pendler hatten sich über überfüllte Busse und lange Wartezeiten am alten Hafen "
    "beschwert."
)
_ZH = (
    "渡轮公司宣布从星期一起每天恢复{0}个班次。暴风雨之后这艘船在船厂停了{1}个星"
    "期,修理费用达到{2}百万克朗,保险公司支付一半。乘客曾经抱怨公共汽车太挤,等候"
    "时间太长。"
)
_OTHER = (
    "Researchers on the island of Norholm counted {0} puffins this summer, more than in any year "
    "since the survey began. A ban on fishing for sand eels helped the birds to feed their chicks, "
    "the biologist who leads the count explained. She warned that a warm autumn could still drive "
    "the eels away, and asked the ministry for {1} more wardens and a boat worth {2} thousand "
    "crowns."
)
TEXTS = {
    "a0": ("Fish market to be rebuilt", _EN.format(4, 3, 12)),
    "a1": ("Puffins return", _OTHER.format(812, 2, 90)),
    "a2": (
        "Ferry school opens",
        "A school for ferry captains opens in Ostmark next autumn, with room for nine.",
    ),
    "a3": ("Fähre fährt wieder", _DE.format(6, 7, 3)),
    "a4": ("渡轮恢复通航", _ZH.format(6, 7, 3)),
    "c0": ("Market hall rebuilt", _EN.format(4, 3, 12).replace("long ago", "years ago")),
}
UPDATE = ("Puffins return", _OTHER.format(815, 2, 95))


def load(url: str) -> None:
    """Write the stored keys into an empty store."""
    with direct_client(url) as client, gzip.open(FIXTURE, "rt", encoding="ascii") as lines:
        for line in lines:
            key, kind, value = json.loads(line)
            if kind == "stream":
                for entry, fields in value:
                    client.execute_command("XADD", _bytes(key), entry, *map(_bytes, fields))
            else:
                client.set(_bytes(key), _bytes(value))


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
