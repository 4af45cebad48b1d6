from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from tooli.providers.programs.reader.cyclopts_parser import describe_cyclopts

cyclopts: Any = pytest.importorskip("cyclopts")


def make_app() -> Any:
    app = cyclopts.App(name="p", help="The program.")

    def copy(
        source: Path,
        *others: Path,
        mode: Literal["fast", "safe"] = "safe",
        tag: list[str] | None = None,
        pair: tuple[int, str] = (1, "a"),
        force: Annotated[bool, cyclopts.Parameter(help="Overwrite.")] = False,
        _internal: Annotated[int, cyclopts.Parameter(parse=False)] = 1,
    ) -> None:
        """Copy files.

        Parameters
        ----------
        source
            The first file.
        """

    copy.__annotations__ = {
        "source": Path,
        "others": Path,
        "mode": Literal["fast", "safe"],
        "tag": list[str] | None,
        "pair": tuple[int, str],
        "force": Annotated[bool, cyclopts.Parameter(help="Overwrite.")],
        "_internal": Annotated[int, cyclopts.Parameter(parse=False)],
    }
    app.command(copy)
    inner = cyclopts.App(name="db", show=False)

    def status() -> None:
        """Show the status."""

    inner.default(status)
    inner.command(status, name="status")
    app.command(inner)
    return app


def test_commands() -> None:
    found = describe_cyclopts(make_app(), "p")
    commands = {" ".join(c["words"]): c for c in found["commands"]}
    assert found["help"] == "The program." and found["skipped"] == []
    assert list(commands) == ["copy", "db", "db status"]
    assert commands["copy"]["help"] == "Copy files."
    assert commands["db"]["is_group"] and commands["db"]["hidden"]


def test_parameters() -> None:
    described = describe_cyclopts(make_app(), "p")
    copy = described["commands"][0]
    found = {p["name"]: p for p in described["levels"][copy["levels"][-1]]["params"]}
    assert list(found) == ["source", "others", "mode", "tag", "pair", "force"]
    assert found["source"]["required"] and found["source"]["help"] == "The first file."
    assert (found["others"]["flags"], found["others"]["nargs"]) == ([], "*")
    assert found["mode"]["schema"] == {"type": "string", "enum": ["fast", "safe"]}
    assert found["tag"]["multiple"] and found["tag"]["schema"] == {"type": "string"}
    assert found["pair"]["items"] == [{"type": "integer"}, {"type": "string"}]
    assert found["tag"]["flags"] == ["--tag"]
    force = found["force"]
    assert (force["action"], force["flags"], force["off"]) == ("flag", ["--force"], ["--no-force"])
