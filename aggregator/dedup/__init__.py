"""The duplicate rules: verdicts, templates, text similarity, diffs. Pure."""
