"""Provenance: who published a text first, who repeated it, and which outlets share their texts."""
