"""Fixtures: a small app, and a function that runs its command lines in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tooli import Argument, Option, Tooli
from tooli.annotations import Destructive
from tooli.core._hot_tables import CALLER_VARIABLES

Answer = tuple[int, str, str]
"""Exit code, stdout, stderr."""


@pytest.fixture(autouse=True)
def no_caller_variables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the environment variables that would change the caller or the output mode."""
    for name in (*CALLER_VARIABLES, "TOOLI_SESSION_ID", "TOOLI_OUTPUT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def shop() -> Tooli:
    """Return an app with commands of several kinds."""
    app = Tooli("shop", version="2.0", description="Sell fruit.")

    @app.command()
    def price(item: str, count: int = 1, *, tags: list[str] | None = None) -> dict[str, Any]:
        """Compute a price.

        Args:
            item: what to buy
            count: how many
        """
        return {"item": item, "price": 3 * count, "tags": tags or []}

    @app.command()
    def names(items: list[str]) -> list[str]:
        """Return the names."""
        return items

    @app.command()
    def count_up(
        stop: int = Argument(..., help="the last number"), step: int = Option(1, min=1)
    ) -> Iterator[int]:
        """Count."""
        yield from range(0, stop, step)

    @app.command(annotations=Destructive)
    def drop(item: str) -> str:
        """Remove an item."""
        return f"removed {item}"

    return app


@pytest.fixture
def answer(shop: Tooli, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Return a function that runs a command line of the app `shop`, or of another app."""

    def run(*argv: str, app: Tooli = shop) -> Answer:
        code = 0
        try:
            app([*argv], prog_name="shop")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
