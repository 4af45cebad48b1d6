"""The stages of a call, one concern in each file. No stage imports another one."""
