"""Arguments with the ASCII aliases of parameters, on every interface."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tooli import Tooli

APP = """
from tooli import Tooli

app = Tooli("t")

@app.command()
def draw(größe: int, 名前: str = "n") -> str:
    return f"{größe}{名前}"

@app.command()
def other() -> None: ...

if __name__ == "__main__":
    app()
"""


def make_app() -> Tooli:
    app = Tooli("t")

    @app.command()
    def draw(größe: int, 名前: str = "n") -> str:
        return f"{größe}{名前}"

    return app


@pytest.mark.parametrize(
    "arguments",
    [
        {"grosse": 3, "arg_2": "x"},
        {"größe": 3, "名前": "x"},
        {"grosse": "3", "名前": "x"},
    ],
)
def test_either_name_works(arguments: dict[str, object]) -> None:
    assert make_app().call("draw", **arguments).result == "3x"


def test_a_parameter_with_both_names_is_an_error() -> None:
    error = make_app().call("draw", grosse=3, größe=4).error
    assert error is not None
    assert (error.code, error.field) == ("E1004", "grosse")


def test_errors_name_the_parameter() -> None:
    error = make_app().call("draw", grosse="many").error
    assert error is not None
    assert (error.code, error.field) == ("E1003", "größe")


def test_input_document_can_use_aliases(tmp_path: Path) -> None:
    program = tmp_path / "app.py"
    program.write_text(APP, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program, "draw", "--json", "--input", "-"],
        input=json.dumps({"grosse": 3}),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    assert json.loads(done.stdout)["result"] == "3n"
