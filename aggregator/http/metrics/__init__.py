"""Prometheus metrics: registry, collectors, aggregation over processes."""
