"""How a tool behaves towards the world: `ReadOnly | Idempotent`, `Destructive`, `OpenWorld`."""

from __future__ import annotations

from tooli.core.tool import Behavior

ReadOnly = Behavior(read_only=True)
"""Only reads; nothing changes."""
Idempotent = Behavior(idempotent=True)
"""Calling it twice does what calling it once does."""
Destructive = Behavior(destructive=True)
"""May delete or overwrite; needs `--yes`."""
OpenWorld = Behavior(open_world=True)
"""Talks to the network or anything else outside."""
