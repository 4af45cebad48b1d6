"""Core types: tools, calls, callers, outcomes, options, and the state of an app."""
