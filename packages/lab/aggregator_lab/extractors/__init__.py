"""Feature extractors beyond TF-IDF and PCA: texts to vectors, the first step of the framework."""
