"""Byte formats of what the index stores: postings, records, sketches, stream entries."""
