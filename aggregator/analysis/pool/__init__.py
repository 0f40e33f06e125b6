"""Worker processes that analyze articles outside the event loop."""
