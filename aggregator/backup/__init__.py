"""Backups of a store: ``creation.py`` writes one, ``restore.py`` makes one the data of a store.

Backup ``aggregator-20261123T080000Z``, complete as soon as it has this name: ``manifest.json`` (indexes,
counts, checksums), ``store.rdb`` (all data at one instant) and ``models/0/en.model`` (fitted models).
"""
