"""Commands of `aggregator` that this distribution adds."""
