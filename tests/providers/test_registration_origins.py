"""The command below transforms and versions."""

from __future__ import annotations

from tooli import Tooli
from tooli.providers.registration_origins import is_transformed, origin_of
from tooli.transforms import ToolTransform


def test_origin_of_commands() -> None:
    app = Tooli("shop")
    for version in ("1.0", "2.0"):
        app.command("add", version=version)(lambda: None)
    app.command("drop")(lambda: None)
    app.command("list")(lambda: None)
    app.with_transforms(ToolTransform("add", help="x"), ToolTransform("drop", help="x"))
    commands = app.tree().commands
    found = {name: (origin_of(one), is_transformed(one)) for name, one in commands.items()}
    first, second, drop, others = app._state.commands
    assert found == {
        "add@1.0": (first, True),
        "add@2.0": (second, True),
        "add": (second, True),
        "drop": (drop, True),
        "list": (others, False),
    }
