"""The values everything else is made of: tools, calls, callers, outcomes, the state of an app."""
