"""News aggregator server: near-duplicate detection by simhash fingerprints, and event detection by bursts.

An article passes through the packages in this order (read ``ingest/service.py`` first):

    analysis      text, features, fingerprint and sketch of an article
    index         look-up of near articles in the store (``store``)
    dedup         verdict: new, related or duplicate
    ingest        commit of the article, exactly once
    events        burst detection on the stream of committed articles (run by ``background``)

``http`` and ``cli`` are the interfaces; ``app.py`` wires the service.
"""

__version__ = "0.1.0"
