"""Exports: an app's tools as code for agent frameworks, Python functions or permission rules."""
