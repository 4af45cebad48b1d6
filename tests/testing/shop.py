"""The app that the tests of tooli.testing use."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

from tooli import Context, NotFoundError, Tooli
from tooli.annotations import Destructive


def make_app(**settings: Any) -> Tooli:
    app = Tooli("shop", version="1.0", **settings)

    @app.command(examples=[{"args": ["tea", "--count", "2"], "description": "Two teas."}])
    def buy(item: str, count: int = 1) -> dict[str, Any]:
        """Buy something."""
        if item == "moon":
            raise NotFoundError("no moon")
        return {"item": item, "count": count}

    @app.command()
    def echo() -> str:
        """Return the content of stdin."""
        return sys.stdin.read()

    @app.command()
    def say(text: str) -> None:
        """Print."""
        print(text)

    @app.command()
    def count(n: int) -> Iterator[int]:
        """Count."""
        yield from range(n)

    @app.command()
    def show_process() -> dict[str, Any]:
        """Return the process state that the command sees."""
        return {"argv": sys.argv, "env": dict(os.environ), "tty": sys.stdout.isatty()}

    @app.command()
    def fail(how: str) -> int:
        """Fail in several ways."""
        return FAILURES[how]()

    @app.command(annotations=Destructive)
    def burn(ctx: Context) -> str:
        """Destroy."""
        return "ash"

    return app


def _exit() -> int:
    sys.exit("bye")


def _close() -> int:
    sys.stdout.close()
    sys.stderr.close()
    return 1


def _environment() -> int:
    os.environ["CHANGED"] = "1"
    os.environ.pop("PATH", None)
    sys.argv = ["changed"]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise RuntimeError("after all that")


def _streams() -> int:
    sys.stdout = sys.stderr = sys.stdin = None  # type: ignore[assignment]
    raise ValueError("no streams")


FAILURES = {"exit": _exit, "close": _close, "environment": _environment, "streams": _streams}
