"""Check-and-insert: from an analyzed article to its committed verdict. Start with ``service.py``."""
