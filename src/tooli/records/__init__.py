"""Filter the records of a result, select their fields, and read the result options."""
