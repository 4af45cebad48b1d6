"""The stage `dry_run`."""

from __future__ import annotations

import pathlib

from tooli import Tooli
from tooli.annotations import Destructive, Idempotent


class TestDryRun:
    def test_the_plan(self) -> None:
        app = Tooli("files")
        ran = []

        @app.command(annotations=Destructive | Idempotent)
        def delete(path: pathlib.Path, depth: float = 3):
            ran.append(path)

        result = app.call("delete", path="a", dry_run=True)
        plan = result.to_dict()["result"]
        assert plan.pop("token")[:1] == "p"
        assert plan == {
            "tool": "files.delete",
            "arguments": {"path": "a", "depth": 3.0},
            "effects": ["idempotent", "destructive"],
            "basis": "declared",
        }
        assert result.meta["dry_run"] is True
        assert not ran

    def test_wrong_arguments_are_wrong_on_a_dry_run_too(self) -> None:
        app = Tooli("files")
        app.command("count")(lambda n=1: n)
        assert app.call("count", n="x", dry_run=True).error.code == "E1003"
