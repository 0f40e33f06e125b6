"""Fit of TF-IDF and PCA to a corpus, with scikit-learn (extra ``fit``); serving imports none of it."""

from importlib.util import find_spec

from aggregator.errors import ConfigurationError

if find_spec("sklearn") is None:
    raise ConfigurationError(
        "Fitting needs scikit-learn, which is not installed; run `pip install 'newsdedup[fit]'`."
    )
