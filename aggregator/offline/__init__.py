"""Offline tools: archive deduplication, evaluation, model fitting, replay. Used by the command line only."""
