"""pytest plugin of .ci/run: the same code gets the same answer twice.

Hypothesis chooses its examples by the test, not by chance, and no example is late on a busy machine. scripts/test
chooses by chance; scripts/check searches long.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)
