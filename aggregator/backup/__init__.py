"""Backups of a store: a snapshot of the server in one directory with a manifest, and its restore.

    BACKUPS/aggregator-20261123T080000Z/     one backup; complete as soon as it has this name
        manifest.json                        versions, indexes, counts, checksums (``creation.py``)
        store.rdb                            all data of the server at one instant (``store/rdb_dump.py``)
        models/0/en.model                    fitted models, without which the articles cannot be read

``creation.py`` writes one; ``restore.py`` verifies one and makes it the data of a store.
"""
