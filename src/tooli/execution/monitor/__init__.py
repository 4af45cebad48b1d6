"""Monitor what a command accesses, with Python's audit hook."""
