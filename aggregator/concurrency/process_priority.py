"""Scheduling priority of background processes: nice value and time slice.

A higher nice value reduces the share of CPU time but not the latency of others: on Linux a task that wakes up
still waits until the running task has used its slice (about 3 ms), and a single post passes between processes
a dozen times. So the time slice of a background process is shortened as well, if the kernel supports it
(Linux 6.12 and later).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys

TIME_SLICE_NS = 100_000  # the minimum that the kernel accepts
# Number of sched_setattr(2), for which C libraries have no wrapper yet.
_SCHED_SETATTR_SYSCALLS = {"x86_64": 314, "aarch64": 274}
# struct sched_attr: size, policy (0: SCHED_OTHER), flags, nice, priority, runtime (the slice), deadline,
# period.
_SCHED_ATTR = struct.Struct("=IIQiIQQQ")


def lower_priority(nice_increment: int) -> None:
    """Raise the nice value of this process and its future children, and shorten their time slices.

    Does nothing if a seccomp filter forbids it or the platform does not support it.
    """
    with contextlib.suppress(AttributeError, OSError):
        os.nice(nice_increment)
    call = _SCHED_SETATTR_SYSCALLS.get(platform.machine()) if sys.platform == "linux" else None
    if call is not None:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        attributes = _SCHED_ATTR.pack(_SCHED_ATTR.size, 0, 0, nice, 0, TIME_SLICE_NS, 0, 0)
        ctypes.CDLL(None).syscall(call, 0, attributes, 0)  # older kernels ignore the slice
