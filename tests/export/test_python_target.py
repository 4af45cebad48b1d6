"""The functions that an app is exported as: called, in both modes."""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.integration.frameworks.everything import app as everything
from tests.parity.zoo import make_app

from tooli import NotFoundError, Tooli
from tooli.describe.app_info import collect_app_info
from tooli.errors import InputError
from tooli.export import export
from tooli.export.python_types import PythonTypes

EVERYTHING = Path(__file__).parents[1] / "integration" / "frameworks" / "everything.py"
ROOT = EVERYTHING.parents[3]


def load(app: Any, mode: str, /, **more: Any) -> ModuleType:
    (source,) = export(collect_app_info(app), "python", mode, **more).values()
    module = ModuleType(f"made_{mode}")
    exec(compile(source, f"{mode}.py", "exec"), module.__dict__)
    return module


@pytest.fixture(scope="module")
def within() -> ModuleType:
    return load(everything, "import")


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
    return load(everything, "subprocess", command=f"{sys.executable} {EVERYTHING}")


@pytest.fixture(params=["within", "apart"])
def made(request: pytest.FixtureRequest) -> ModuleType:
    return request.getfixturevalue(request.param)


def test_results(made: ModuleType) -> None:
    assert made.later(1) == 2
    assert made.count(n=2) == [{"i": 0}, {"i": 1}]
    assert made.acount(2) == [0, 1]
    assert made.grep("--yes") == "--yes"
    assert made.grep() == "x"
    assert made.collide(json="--x", self="me")["self"] == "me"
    assert made.class_().startswith("Bear a name")
    assert made.class_("word") == "word"


def test_arguments_of_every_kind(made: ModuleType) -> None:
    seen = made.optional()
    assert seen["words"] == ["list", ["a", "b"]]
    assert seen["limit"] == ["int", 10]
    assert made.optional(limit=None)["limit"] == ["NoneType", None]
    assert made.optional(words=["--x"], path=Path("a"))["words"] == ["list", ["--x"]]
    user = {"name": "Ada", "age": 3}
    seen = made.structured({"x": 1}, {"start": 1, "stop": 2}, user, [user], {"label": "root"})
    assert seen["several"][0] == "list"


def test_what_is_destroyed_is_confirmed(made: ModuleType) -> None:
    assert made.delete("x", yes=True) == "deleted x"
    with pytest.raises(Exception, match="was not confirmed") as caught:
        made.delete("x")
    assert caught.value.code == "E1010"


def test_failures_of_a_program_are_raised(apart: ModuleType) -> None:
    with pytest.raises(apart.CommandError, match="no such thing") as caught:
        apart.fail("missing")
    error = caught.value
    assert (error.code, error.category, error.field) == ("E3010", "state", "kind")
    assert error.suggestion["fix"] == "Take another."
    assert error.is_retryable
    assert error.error["message"] == str(error)
    with pytest.raises(apart.CommandError, match="No answer within 1 seconds"):
        apart.wait(60)


def test_failures_in_this_process_are_the_apps_own(within: ModuleType) -> None:
    with pytest.raises(NotFoundError):
        within.fail("missing")
    with pytest.raises(InputError):
        within.fail("neither")


def test_signatures(apart: ModuleType, within: ModuleType) -> None:
    assert str(inspect.signature(apart.scalars)).replace("'", "").replace('"', "") == (
        "(text: str, whole: int, number: float, truth: bool, path: str | Path, "
        "color: Literal[red, deep-blue], level: Literal[1, 2], word: Literal[ham, eggs])"
        " -> dict[str, Any]"
    )
    assert inspect.signature(apart.users_create).return_annotation == "User"
    assert inspect.signature(within.users_create).return_annotation == "Any"  # a User, in fact
    assert inspect.signature(within.count).return_annotation == "list[dict[str, int]]"
    assert inspect.signature(within.nothing).return_annotation == "None"
    assert inspect.signature(apart.say).return_annotation == "Any"
    assert "dry_run" not in inspect.signature(apart.delete).parameters


def test_docstrings(apart: ModuleType) -> None:
    assert apart.scalars.__doc__ == (
        "Take one of each plain kind.\n\n    Args:\n        text: Any text.\n"
        "        path: Where it is.\n    "
    )
    words = " ".join(apart.class_.__doc__.split())
    assert "with \"quotes\", 'quotes', \\back\\slashes and {braces}. Triple quotes, too: " in words


def test_the_whole_zoo_can_be_called() -> None:
    zoo = make_app()
    module = load(zoo, "import", app="tests.parity.zoo:make_app")
    module.app = zoo
    assert module.find_files("*.py")["pattern"] == ["str", "*.py"]
    assert module.take_row((1, "a"))["value"] == ["tuple", (1, "a")]
    assert module.maybe_point()["value"] == ["NoneType", None]
    assert module.users_admin_promote("Ada")["name"] == ["str", "Ada"]


def test_names_that_python_does_not_take() -> None:
    app = Tooli("odd")

    @app.command()
    def take(app: str, run: str = "r", given: list[int] | None = None) -> list[str]:
        return [app, run]

    portrait = collect_app_info(app)
    module = load(app, "import", app="tests.parity.zoo:make_app")
    module.app = app
    assert list(inspect.signature(module.take).parameters) == ["app_", "run_", "given_"]
    assert module.take("a", run_="b") == ["a", "b"]
    (source,) = export(portrait, "python").values()
    assert '{"app": app_, "run": run_, "given": given_}' in source


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "Any"),
        (True, "Any"),
        ({"$ref": "#/$defs/X"}, "Any"),
        ({"type": "string"}, "str"),
        ({"type": "string", "format": "path"}, "str"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, "int | None"),
        ({"anyOf": [{"type": "integer"}, {}]}, "Any"),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, 'Literal["a"] | Literal["b"]'),
        ({"anyOf": [{"type": "string"}, {"enum": ["|", "]"]}]}, 'str | Literal["|", "]"]'),
        ({"enum": ["x" * 70], "type": "string"}, "str"),
        ({"enum": [1.5]}, "Any"),
        ({"type": "array"}, "list[Any]"),
        ({"type": "array", "items": {"type": "number"}}, "list[float]"),
        ({"type": "array", "prefixItems": [{"type": "string"}], "maxItems": 1}, "list[Any]"),
        ({"type": "object"}, "dict[str, Any]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"type": "object", "properties": {"a-b": {}}}, "dict[str, Any]"),
        ({"type": "object", "properties": {"class": {}}}, "dict[str, Any]"),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, "Made"),
    ],
)
def test_types(schema: Any, expected: str) -> None:
    assert PythonTypes().return_type(schema, "Made") == expected


def test_a_class_is_written_once() -> None:
    types = PythonTypes(("Made",))
    whole = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}
    assert types.return_type(whole, "Made") == "MadeResult"
    assert types.return_type(whole, "Other") == "MadeResult"
    assert types.parameter_type(whole | {"description": 'Say """.'}, "Made") == "MadeResult"
    assert types.parameter_type({**whole, "required": ["b"]}, "Made") == "Made2"
    assert types.classes[:2] == [
        "class MadeResultRequired(TypedDict):\n    a: Any",
        "class MadeResult(MadeResultRequired, total=False):\n    b: Any",
    ]
