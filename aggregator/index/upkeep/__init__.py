"""Upkeep of the index: retention, compaction, checks, and the guards of its data."""
