"""WHAT HOLDS A RUNNING COMMAND: deadlines, watch, walls."""
