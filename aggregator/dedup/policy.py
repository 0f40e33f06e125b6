"""Policies: duplicate rules and their thresholds. Pure.

* ``hamming``     the rule of the paper (Hu & You 2017, section 2.2): a stored article within 3 bits makes a
  duplicate, within 7 bits a related article.
* ``verified``    (default) fingerprint and sketch only propose candidates; shared wording, openings,
  headlines, outlets and times decide (docs/design/duplicate-rules.md), at any distance; without them even 3
  bits are only "related".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from fnmatch import translate
from functools import lru_cache
from math import inf

from aggregator.analysis.text.normalization import source_key
from aggregator.dedup.copy_rule import EQUAL_HEADLINES, CopyRule, Requirement
from aggregator.errors import InvalidInput

_UNBOUNDED = ("min_shared_shingles", "same_outlet_hours")


@dataclass(frozen=True, slots=True)
class Policy:
    """Name and thresholds of the duplicate rule: distances in bits, containments and similarities in 0..1.

    ``keep_if_adds``: a duplicate of which at least this share of the words is new to readers is kept.
    ``updates_are_new``: a copy with replaced figures (a toll, a price) is "related" with ``updated_figures``,
    as public-health editors need it (Rodier & Carter 2020, section 4.2). ``copy_rule`` (derived): the table
    of the other thresholds. ``containment_floor`` (derived): no rule distinguishes below it.
    """

    name: str = "verified"
    duplicate_bits: int = 3
    related_bits: int = 7
    min_containment: float = 0.2
    min_common_opening: float = 0.35
    min_headline_similarity: float = 0.8
    partial_containment: float = 0.35
    min_opening: float = 0.35
    complete_containment: float = 0.6
    min_shared_shingles: float = 10.0
    strong_containment: float = 0.75
    same_outlet_hours: float = 16.0
    same_outlet_containment: float = 0.7
    same_outlet_opening: float = 0.5
    same_outlet_headline_similarity: float = 0.8
    later_containment: float = 0.9
    later_other_headline_containment: float = 0.96
    updates_are_new: bool = False
    keep_if_adds: float = 0.2
    copy_rule: CopyRule = field(init=False, repr=False, compare=False)
    containment_floor: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise ValueError for a value outside its range."""
        for name in [each.name for each in fields(self) if each.init and each.name != "name"]:
            most = 64 if name.endswith("_bits") else inf if name in _UNBOUNDED else 1
            if not 0 <= (value := getattr(self, name)) <= most:
                raise ValueError(f"{name}: {value:g} is not from 0 to {most}")
        if self.related_bits < self.duplicate_bits:
            below = f"below duplicate_bits ({self.duplicate_bits})"
            raise ValueError(f"related_bits: {self.related_bits} must not be {below}")
        rule = self._build_copy_rule()
        floor = min(row.containment for row in (*rule.other_outlet, *rule.same_outlet, *rule.later))
        object.__setattr__(self, "copy_rule", rule)
        object.__setattr__(self, "containment_floor", floor)

    def _build_copy_rule(self) -> CopyRule:
        opening, headline = self.same_outlet_opening, self.same_outlet_headline_similarity
        other_headline = max(self.later_containment, self.later_other_headline_containment)
        return CopyRule(
            other_outlet=(
                Requirement(
                    self.min_containment,
                    common_opening=self.min_common_opening,
                    headline=self.min_headline_similarity,
                ),
                Requirement(max(self.min_containment, self.partial_containment), opening=self.min_opening),
                Requirement(max(self.min_containment, self.complete_containment), opening=0.0),
            ),
            same_outlet=(Requirement(self.same_outlet_containment, opening=opening, headline=headline),),
            later=(
                Requirement(self.later_containment, headline=EQUAL_HEADLINES),
                Requirement(other_headline, opening=opening),
            ),
            same_outlet_hours=self.same_outlet_hours,
            strong=self.strong_containment,
            shared=self.min_shared_shingles,
        )


DEFAULT_PROFILE = "default"  # name of the policy that the settings describe
CACHED_SOURCES = 4096  # sources whose profile is kept: 0.2 us instead of up to 0.9 ms for 1,000 patterns


@dataclass(frozen=True, slots=True)
class Profile:
    """A named policy."""

    name: str = DEFAULT_PROFILE
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True)
class SourceRule:
    """The profile of the sources that wholly match a pattern (``*``, ``?``, ``[ab]``; spelled in any way)."""

    patterns: tuple[str, ...]
    profile: str


class PolicyProfiles:
    """The default policy, profiles by name, and rules of sources in order."""

    def __init__(
        self, default: Policy, profiles: Mapping[str, Policy] | None = None, rules: Sequence[SourceRule] = ()
    ) -> None:
        policies = {DEFAULT_PROFILE: default, **(profiles or {})}
        self._by_name = {name: Profile(name, policy) for name, policy in policies.items()}
        self.default = self._by_name[DEFAULT_PROFILE]
        self.rules = tuple(rules)
        self._patterns = [
            (re.compile(translate(source_key(pattern))), self._by_name[rule.profile])
            for rule in rules
            for pattern in rule.patterns
        ]
        self._of_source = lru_cache(CACHED_SOURCES)(self._match_source)

    def replace(self, other: PolicyProfiles) -> None:
        """Become equal to ``other``."""
        vars(self).update(vars(other))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all profiles, ``default`` first."""
        return tuple(self._by_name)

    def named(self, name: str) -> Profile:
        """The profile of this name. Raises InvalidInput that lists the known names."""
        if name not in self._by_name:
            near = [f" did you mean {near!r}?" for near in get_close_matches(name[:80], self.names, n=1)]
            known = f"unknown profile {name[:80]!r};{''.join(near)} known: {', '.join(self.names)}."
            raise InvalidInput(f"policy: {known}", field="policy")
        return self._by_name[name]

    def select(self, name: str, source: str) -> Profile:
        """The profile that a request named, or that of ``source``. Raises InvalidInput for unknown names."""
        return self.named(name) if name else self._of_source(source)

    def _match_source(self, source: str) -> Profile:
        folded = source_key(source)
        return next((named for pattern, named in self._patterns if pattern.match(folded)), self.default)
