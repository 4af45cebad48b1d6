"""What Typer's suite calls `python -m coverage run`: it runs the program, and measures nothing.

The suite starts hundreds of programs below coverage to measure Typer. Here nobody looks at the
figures, and measuring takes longer than the programs.
"""
