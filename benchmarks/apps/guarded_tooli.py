"""Run the two-command app with a safety feature: `guarded_tooli.py FEATURE ARGUMENTS…`."""

import os
import sys
from tempfile import gettempdir

from tooli import Tooli
from tooli.annotations import Destructive

GUARDS = {
    "key": ({}, ["--idempotency-key", os.urandom(8).hex()]),
    "replay": ({}, ["--idempotency-key", "used"]),
    "destructive": ({"annotations": Destructive}, ["--yes"]),
    "capabilities": ({"capabilities": ["none"]}, []),
    "timeout": ({"timeout": 60}, []),
    "isolation": ({"capabilities": ["none"], "isolation": "required"}, []),
    "dry-run": ({"annotations": Destructive}, ["--dry-run"]),
}
"""The keywords of the command, and the flags of the caller, by feature."""


def main() -> None:
    """Run the command line."""
    os.environ["TOOLI_STATE_DIR"] = os.path.join(gettempdir(), f"tooli-bench-{os.getuid()}")
    keywords, flags = GUARDS[sys.argv.pop(1)]
    sys.argv += flags
    app = Tooli(name="demo", version="1.0.0")

    @app.command(**keywords)
    def hello(name: str, count: int = 1) -> str:
        """Greet somebody."""
        return " ".join(["hello", name] * count)

    @app.command()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    app()
