"""Typer's own test suite, run with ``Tooli`` in ``Typer``'s place.

The suite comes from Typer's source distribution. It runs twice in a private virtual
environment: as it is (the baseline), and with every name that means ``typer.Typer``
pointing at ``tooli.Tooli`` instead, in the test processes and in the subprocesses that
the tests start. What passes in the first run and not in the second is the difference.
"""
