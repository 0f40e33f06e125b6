"""How does a process that nobody waits for leave the processors to those that somebody waits for?

A lower priority gives it a smaller share. It does not say when: on Linux a task that was woken still waits until the
one on its processor has used up its slice, some 3 ms, and a single post is handed from process to process a dozen
times. So the slices of such a process are made short as well, where the kernel can (Linux 6.12 and later).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys

TIME_SLICE_NS = 100_000  # the shortest that the kernel allows
# Of sched_setattr(2), for which the C libraries of today have no function yet.
_SCHED_SETATTR_SYSCALLS = {"x86_64": 314, "aarch64": 274}
# struct sched_attr: its size, policy (0: the usual one), flags, nice, priority, runtime (here: the slice), deadline, period.
_SCHED_ATTR = struct.Struct("=IIQiIQQQ")


def lower_priority(nice_increment: int) -> None:
    """Lower the priority of this process, and of those that it starts from now on, by ``by``, and shorten their slices.

    Where that is forbidden (by a filter of system calls), or not known, it works beside the others as an equal.
    """
    with contextlib.suppress(AttributeError, OSError):
        os.nice(nice_increment)
    call = _SCHED_SETATTR_SYSCALLS.get(platform.machine()) if sys.platform == "linux" else None
    if call is not None:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        asked = _SCHED_ATTR.pack(_SCHED_ATTR.size, 0, 0, nice, 0, TIME_SLICE_NS, 0, 0)
        ctypes.CDLL(None).syscall(call, 0, asked, 0)  # an older kernel takes it and does nothing
