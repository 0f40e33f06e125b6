"""A real nginx on loopback with the location blocks of the documentation."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.hang_limit import HANG_LIMIT_S

OPERATING = Path(__file__).resolve().parents[2] / "docs" / "operating.md"
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def documented_blocks() -> list[str]:
    """The nginx blocks of docs/operating.md in their order."""
    return re.findall(
        r"^```nginx\n(.*?)^```$", OPERATING.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


@contextmanager
def nginx(directory: Path, port: int, server: str, *more_servers: str) -> Iterator[None]:
    """An nginx in one process that listens on 127.0.0.1:``port``; skips the test if none is installed.

    ``server``: the directives of that server block. ``more_servers``: whole server blocks.
    """
    # Debian puts nginx into a directory that is not on the path of every user.
    binary = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if binary is None:
        pytest.skip("nginx is not installed")
    paths = "".join(f"{name}_temp_path {directory / name};\n" for name in _TEMPORARY)
    configuration = directory / "nginx.conf"
    configuration.write_text(
        f"daemon off; master_process off; pid {directory / 'pid'};\nevents {{}}\n"
        f"http {{ access_log off;\n{paths}{''.join(more_servers)}"
        f"server {{ listen 127.0.0.1:{port};\n{server} }} }}\n",
        encoding="utf-8",
    )
    with subprocess.Popen([binary, "-e", "stderr", "-p", directory, "-c", configuration]) as process:
        try:
            deadline = time.monotonic() + HANG_LIMIT_S
            while not _accepts(port):
                assert process.poll() is None, "nginx ended; its message is above"
                assert time.monotonic() < deadline, "nginx does not accept connections"
            yield
        finally:
            process.terminate()


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
