"""Side effects of a command, for `@app.command(annotations=ReadOnly | Idempotent)`."""

from __future__ import annotations

from tooli.core.tool import Behavior

ReadOnly = Behavior(read_only=True)
"""The command only reads."""
Idempotent = Behavior(idempotent=True)
"""Calling the command twice has the same effect as calling it once."""
Destructive = Behavior(destructive=True)
"""The command may delete or overwrite something; it needs `--yes`."""
OpenWorld = Behavior(open_world=True)
"""The command uses the network or other external systems."""
