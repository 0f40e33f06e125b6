"""The tables of settings in docs/configuration.md: ``python -m tests.project.settings_table`` prints them."""

from aggregator.cli.common_options import SETTING_FIELDS, SETTING_GROUPS
from aggregator.settings import ENV_PREFIX


def markdown_tables() -> str:
    """A table for each group, with a row for each setting."""
    rows = []
    for title, names in SETTING_GROUPS.items():
        rows += [f"### {title.capitalize()}", "", "| variable | default | meaning |", "| --- | --- | --- |"]
        for option in map(SETTING_FIELDS.__getitem__, names):
            default = "" if option.default == "" else f"`{option.default}`"
            rows.append(f"| `{ENV_PREFIX}{option.name.upper()}` | {default} | {option.metadata['doc']} |")
        rows.append("")
    return "\n".join(rows[:-1])


if __name__ == "__main__":
    print(markdown_tables())
