"""Reading and running of the blocks of a guide."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.guides.blocks import missing_line, parse_blocks, split_output, write_script
from tests.guides.test_guides import environment

pytestmark = pytest.mark.integration

GUIDE = """
```sh
name=ferry
```

```python title="hello.py"
print("hello")
```

```sh
python hello.py
echo $name
```

```text
hello
f...y
```

```console
false
```
"""


def test_blocks_share_a_session_and_files(tmp_path: Path) -> None:
    """Blocks marked ``console`` are not run."""
    blocks = parse_blocks(GUIDE)
    script = write_script(blocks, tmp_path)
    done = subprocess.run(
        ["bash", script], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )

    assert [block.language for block in blocks] == ["sh", "python", "sh", "text", "console"]
    assert split_output(done.stdout)[2] == ["", "hello", "ferry"]
    assert missing_line(blocks[3].text, split_output(done.stdout)[2]) is None


def test_a_failing_command_fails_the_script(tmp_path: Path) -> None:
    """Also one in the middle."""
    script = write_script(parse_blocks("```sh\nfalse\n```\n```sh\ntrue\n```\n"), tmp_path)

    assert subprocess.run(["bash", script], cwd=tmp_path, check=False).returncode == 1


@pytest.mark.parametrize(
    ("expected", "printed", "missing"),
    [
        ("a\nc", ["a", "b", "c"], None),
        ("c\na", ["a", "b", "c"], "a"),
        ("a", ["a b"], "a"),
        ("a...", ["a b"], None),
    ],
)
def test_output_is_compared_line_by_line(expected: str, printed: list[str], missing: str | None) -> None:
    """Lines between the expected ones are ignored, their order is not."""
    assert missing_line(expected, printed) == missing
