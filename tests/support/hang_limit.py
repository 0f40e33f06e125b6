"""Limit of every wait in a test: a condition that is not met until then never will be.

It does not measure speed. A test that asserts how fast something is counts events, or CPU time.
"""

HANG_LIMIT_S = 300.0
