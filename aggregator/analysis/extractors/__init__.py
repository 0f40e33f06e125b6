"""Feature extractors: texts to vectors, the first step of the framework (``contract.py``)."""
