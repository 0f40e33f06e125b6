"""News-aggregator simhash indexing server.

An article travels through the modules in this order (read ``ingest.py`` first):

    text/extract -> text/language -> text/tokens      what are its words?
    features -> fingerprint                           which 64 bits stand for it?
    overlap                                           which shingles sample its wording?
    index (over store/) with blocks                   which stored articles are near?
    verdict                                           new, related or duplicate?
    index                                             record it, exactly once
    bursts (fed by jobs through events)               is its story breaking?

``http/`` and ``cli.py`` are the edges; ``app.py`` wires everything together.
"""

__version__ = "0.1.0"
