"""Real Typer applications from the package index, run with Typer and with Tooli in its place.

Every command line of `programs.py` runs as a process at a pipe and at a terminal: once with Typer,
and with Tooli with nothing set and with `TOOLI_OUTPUT=text`. Output, exit code and written files
are compared byte by byte. `differences.py` lists the differences that are meant.
"""
