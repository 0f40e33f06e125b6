"""pytest plugin of .ci/run that makes property tests deterministic.

Hypothesis derives its examples from the test instead of a random seed, and examples have no deadline.
scripts/test uses random examples; scripts/check uses many more.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)
