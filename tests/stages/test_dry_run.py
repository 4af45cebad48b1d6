"""The stage `dry_run`."""

from __future__ import annotations

import pathlib

from tooli import Tooli
from tooli.annotations import Destructive, Idempotent


class TestDryRun:
    def test_plan_of_an_unmarked_function(self) -> None:
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

    def test_invalid_arguments_are_rejected_in_a_dry_run(self) -> None:
        app = Tooli("files")
        app.command("count")(lambda n=1: n)
        assert app.call("count", n="x", dry_run=True).error.code == "E1003"
