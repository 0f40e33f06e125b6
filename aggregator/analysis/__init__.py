"""Article analysis: text to index terms, fingerprint and sketch. No clock; no I/O except model files."""
