"""Parts of ``scripts/bench scale``: a large index with the distribution of real news, and its measurement.

corpus      real English articles, analyzed once
renaming    which shingles and terms of a further article are those of a real one; pure
replicas    any number of generated articles from the real ones, in columns; pure
loading     buckets, records and bindings written in bulk
measuring   cost of look-ups, check-and-insert, reads and upkeep
fitting     cost as a function of the number of stored articles, and predictions; pure
"""
