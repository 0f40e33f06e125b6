"""Offline tools: archive deduplication, evaluation, model fitting, replay. Imported by the command line only."""
