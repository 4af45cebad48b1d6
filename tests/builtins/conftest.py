"""An app with a command and a group, for the tests of built-in commands."""

from __future__ import annotations

import pytest

from tooli import Tooli


@pytest.fixture
def app() -> Tooli:
    app, users = Tooli("shop", version="2.0", description="Sell things."), Tooli()

    @app.command()
    def find_items(text: str, limit: int = 10) -> list[str]:
        """Find items by text."""
        return [text] * limit

    @users.command()
    def create(name: str) -> dict[str, str]:
        """Create a user."""
        return {"name": name}

    app.add_typer(users, name="users")
    return app
