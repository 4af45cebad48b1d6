"""The stages: one concern around a call in each file. No stage imports another one."""
