"""Decide who may run a command and what it may access."""
