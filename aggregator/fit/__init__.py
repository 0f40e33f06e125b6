"""Fit of TF-IDF and PCA to a corpus, with scikit-learn (extra ``fit``); serving imports none of it."""
