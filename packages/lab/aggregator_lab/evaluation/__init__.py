"""Evaluation protocols: quality of verdicts, groups, related articles and events on labeled data."""
