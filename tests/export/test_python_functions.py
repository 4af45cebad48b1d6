"""The Python functions that an app is exported as, called in both modes."""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.integration.frameworks.everything import app as everything
from tests.parity.sample_apps import make_app

from tooli import NotFoundError, Tooli
from tooli.describe.sections import collect_app_info
from tooli.errors import InputError
from tooli.export import export
from tooli.export.export_spec import ExportSpec
from tooli.export.python_functions import PythonTypes

EVERYTHING = Path(__file__).parents[1] / "integration" / "frameworks" / "everything.py"
ROOT = EVERYTHING.parents[3]


def load(app: Any, mode: str, /, **more: Any) -> ModuleType:
    (source,) = export(ExportSpec(collect_app_info(app), "python", mode, **more)).values()
    module = ModuleType(f"made_{mode}")
    exec(compile(source, f"{mode}.py", "exec"), module.__dict__)
    return module


@pytest.fixture(scope="module")
def import_mode() -> ModuleType:
    return load(everything, "import")


@pytest.fixture
def subprocess_mode(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
    return load(everything, "subprocess", command=f"{sys.executable} {EVERYTHING}")


@pytest.fixture(params=["import_mode", "subprocess_mode"])
def module(request: pytest.FixtureRequest) -> ModuleType:
    return request.getfixturevalue(request.param)


def test_functions_return_the_result_of_the_command(module: ModuleType) -> None:
    assert module.later(1) == 2
    assert module.count(n=2) == [{"i": 0}, {"i": 1}]
    assert module.acount(2) == [0, 1]
    assert module.grep("--yes") == "--yes"
    assert module.grep() == "x"
    assert module.reserved_names(json="--x", self="me")["self"] == "me"
    assert module.class_().startswith("Be named like")
    assert module.class_("word") == "word"


def test_pages_have_the_cursor_of_the_next_page(module: ModuleType) -> None:
    first = module.pages()
    assert (first, first.total) == ([0, 1, 2], 7)
    second = module.pages(cursor=first.next_cursor)
    last = module.pages(limit=1, cursor=module.pages(limit=6).next_cursor)
    assert (second, last, last.next_cursor) == ([3, 4, 5], [6], None)
    assert module.pages(limit=0) == [*range(7)]


def test_text_with_a_token_limit_is_complete(module: ModuleType) -> None:
    assert module.long_text() == "x" * 5000


def test_arguments_of_every_kind_reach_the_command(module: ModuleType) -> None:
    seen = module.optional()
    assert seen["words"] == ["list", ["a", "b"]]
    assert seen["limit"] == ["int", 10]
    assert module.optional(limit=None)["limit"] == ["NoneType", None]
    assert module.optional(words=["--x"], path=Path("a"))["words"] == ["list", ["--x"]]
    user = {"name": "Ada", "age": 3}
    seen = module.structured({"x": 1}, {"start": 1, "stop": 2}, user, [user], {"label": "root"})
    assert seen["several"][0] == "list"


def test_destructive_commands_need_confirmation(module: ModuleType) -> None:
    assert module.delete("x", yes=True) == "deleted x"
    with pytest.raises(Exception, match="needs a confirmation") as caught:
        module.delete("x")
    assert caught.value.code == "E1010"


def test_subprocess_mode_raises_command_error(subprocess_mode: ModuleType) -> None:
    with pytest.raises(subprocess_mode.CommandError, match="no such thing") as caught:
        subprocess_mode.fail("missing")
    error = caught.value
    assert (error.code, error.category, error.field) == ("E3010", "state", "kind")
    assert error.suggestion["fix"] == "Take another."
    assert error.is_retryable
    assert error.error["message"] == str(error)
    with pytest.raises(subprocess_mode.CommandError, match="Timed out after 1 seconds"):
        subprocess_mode.wait(60)


def test_import_mode_raises_the_original_error(import_mode: ModuleType) -> None:
    with pytest.raises(NotFoundError):
        import_mode.fail("missing")
    with pytest.raises(InputError):
        import_mode.fail("neither")


def test_signatures_have_the_parameter_and_return_types(
    subprocess_mode: ModuleType, import_mode: ModuleType
) -> None:
    assert str(inspect.signature(subprocess_mode.scalars)).replace("'", "").replace('"', "") == (
        "(text: str, whole: int, number: float, truth: bool, path: str | Path, "
        "color: Literal[red, deep-blue], level: Literal[1, 2], word: Literal[ham, eggs])"
        " -> dict[str, Any]"
    )
    # In a result every field is required; as an argument, a field with a default is not.
    assert inspect.signature(subprocess_mode.users_create).return_annotation == "UserResult"
    assert inspect.signature(import_mode.users_create).return_annotation == "Any"  # a User, in fact
    assert inspect.signature(import_mode.count).return_annotation == "list[dict[str, int]]"
    assert inspect.signature(import_mode.nothing).return_annotation == "None"
    assert inspect.signature(subprocess_mode.say).return_annotation == "Any"
    assert "dry_run" not in inspect.signature(subprocess_mode.delete).parameters


def test_docstrings_describe_the_command_and_parameters(subprocess_mode: ModuleType) -> None:
    assert inspect.getdoc(subprocess_mode.scalars) == (  # Python 3.13 removes the indentation
        "Take a value of each scalar type.\n\nArgs:\n    text: Any text.\n    path: Where it is."
    )
    text = " ".join(subprocess_mode.class_.__doc__.split())
    assert "with \"quotes\", 'quotes', \\back\\slashes and {braces}. Triple quotes, too: " in text


def test_sample_app_commands_receive_their_arguments() -> None:
    sample = make_app()
    module = load(sample, "import", app="tests.parity.sample_apps:make_app")
    module.app = sample
    assert module.find_files("*.py")["pattern"] == ["str", "*.py"]
    assert module.argument_int_str_tuple((1, "a"))["value"] == ["tuple", (1, "a")]
    assert module.option_dataclass()["value"] == ["NoneType", None]
    assert module.users_admin_promote("Ada")["name"] == ["str", "Ada"]


def test_reserved_parameter_names_get_an_underscore() -> None:
    app = Tooli("odd")

    @app.command()
    def take(app: str, run: str = "r", without_none: list[int] | None = None) -> list[str]:
        return [app, run]

    app_info = collect_app_info(app)
    module = load(app, "import", app="tests.parity.sample_apps:make_app")
    module.app = app
    assert list(inspect.signature(module.take).parameters) == ["app_", "run_", "without_none_"]
    assert module.take("a", run_="b") == ["a", "b"]
    (source,) = export(ExportSpec(app_info, "python")).values()
    assert '{"app": app_, "run": run_, "without_none": without_none_}' in source


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
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, "Item"),
    ],
)
def test_return_type_matches_the_schema(schema: Any, expected: str) -> None:
    assert PythonTypes().return_type(schema, "Item") == expected


def test_equal_schemas_share_one_class() -> None:
    types = PythonTypes(("Item",))
    whole = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}
    assert types.return_type(whole, "Item") == "ItemResult"
    assert types.return_type(whole, "Other") == "ItemResult"
    assert types.parameter_type(whole | {"description": 'Say """.'}, "Item") == "ItemResult"
    assert types.parameter_type({**whole, "required": ["b"]}, "Item") == "Item2"
    assert types.classes[:2] == [
        "class ItemResultRequired(TypedDict):\n    a: Any",
        "class ItemResult(ItemResultRequired, total=False):\n    b: Any",
    ]
