"""Text processing: HTML extraction, language detection, normalization, words and index terms."""
