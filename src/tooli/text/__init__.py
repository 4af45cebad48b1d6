"""Redaction, sanitizing and JSON conversion of values that leave the process."""
