"""One concern each, around a call; no stage knows another."""
