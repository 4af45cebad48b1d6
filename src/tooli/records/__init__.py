"""Filter, select, page and truncate the records of a result."""
