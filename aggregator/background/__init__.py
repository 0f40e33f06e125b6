"""Background work: periodic tasks under a leader lease, and index maintenance."""
