"""Typer's own test suite, run with `Tooli` instead of `Typer`.

The suite comes from Typer's source distribution and runs in a private virtual environment. A run
replaces the class `typer.Typer` with `tooli.Tooli`, in the test processes and in the subprocesses
that the tests start. The tests that fail are run again with Typer itself. Tests that pass only
with Typer are the differences.
"""
