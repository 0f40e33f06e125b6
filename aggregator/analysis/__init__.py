"""Article analysis: text to index terms, fingerprint and shingle sketch. Pure; no clock, no I/O except model files."""
