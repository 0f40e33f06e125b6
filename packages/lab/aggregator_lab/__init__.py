"""Measurements and experiments: evaluation protocols, methods of the literature, feature extractors."""

__version__ = "0.1.0"
