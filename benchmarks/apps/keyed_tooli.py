"""The two-command app with an idempotency key: `keyed_tooli.py new|replay WORDS…`."""

import os
import sys
from tempfile import gettempdir


def main() -> None:
    """Run the command line with a key that nobody has used, or with one that was."""
    os.environ["TOOLI_STATE_DIR"] = os.path.join(gettempdir(), f"tooli-bench-{os.getuid()}")
    key = "used" if sys.argv.pop(1) == "replay" else os.urandom(8).hex()
    sys.argv += ["--idempotency-key", key]
    from two_tooli import app

    app()
