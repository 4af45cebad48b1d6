"""Replacement for the package `coverage`, which runs a program without measuring it.

Typer's suite starts hundreds of programs with `python -m coverage run`. The results are not needed
here, and measuring takes longer than the programs.
"""
