"""The table of settings in docs/configuration.md: ``python -m tests.project.settings_table`` prints it."""

import dataclasses

from aggregator.settings import ENV_PREFIX, Settings


def markdown_table() -> str:
    """One row per setting."""
    rows = ["| variable | default | meaning |", "| --- | --- | --- |"]
    for option in dataclasses.fields(Settings):
        default = "" if option.default == "" else f"`{option.default}`"
        rows.append(f"| `{ENV_PREFIX}{option.name.upper()}` | {default} | {option.metadata['doc']} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(markdown_table())
