"""OpenAPI of an app: valid, complete, with examples that fit."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import jsonschema
import pydantic
import pytest
from openapi_spec_validator import validate
from tests.parity.sample_apps import make_app, make_callback_app, make_single_command_app

from tooli import Argument, Context, Option, Tooli
from tooli.annotations import Destructive, ReadOnly
from tooli.describe.openapi_document import build_openapi
from tooli.describe.schema_text import parse_example
from tooli.errors import ERROR_CODES
from tooli.http.http_request import read_options
from tooli.records.call_options import read_run_option


class Node(pydantic.BaseModel):
    """Contains itself."""

    name: str
    children: list[Node] = []


class Kind(enum.Enum):
    A = "a"
    B = "b"


@pytest.fixture
def app() -> Tooli:
    app = Tooli("docs", version="2", description="Documents.")

    @app.command(
        annotations=ReadOnly,
        task_group="Reading",
        when_to_use="often",
        error_codes={"E3001": "nothing"},
        examples=[
            {"args": ["a.md", "--limit", "3", "--deep"], "description": "Deep."},
            {"args": ["a.md", "--no-such"], "description": "Dropped."},
        ],
    )
    def read(path: Path, limit: int = 1, deep: bool = False) -> list[str]:
        """Read it.

        All of it.
        """
        return []

    @app.command(annotations=Destructive, requires_approval=True, auth=["w"], danger_level="high")
    def wipe(tree: Node) -> Node:
        """Wipe it."""
        return tree

    @app.command()
    def rows(n: int = 1) -> Iterator[Node]:
        """Stream it."""
        yield Node(name="x")

    @app.command(deprecated=True)
    def say(text: str) -> None:
        """Print it."""

    @app.command()
    def ask(ctx: Context) -> str:
        """Ask."""
        return ""

    @app.command(hidden=True)
    def secret() -> str:
        """Not shown."""
        return ""

    app.command("odd {name}/x")(lambda: 1)
    group = Tooli("group")
    group.command("say")(say)
    app.add_typer(group, name="group")
    app.command("group-say")(lambda: 2)
    return app


def document(app: Tooli, **more):
    library = app._state
    return build_openapi(library.name, library.version, library.description, app.catalog, **more)


@pytest.mark.parametrize(
    "make", [make_app, make_single_command_app, make_callback_app, lambda: Tooli("empty")]
)
@pytest.mark.parametrize("more", [{}, {"secured": True, "server_url": "https://x.example/api"}])
def test_it_is_valid(make, more) -> None:
    validate(document(make(), **more))


def test_it_is_valid_with_recursion_and_odd_names(app: Tooli) -> None:
    told = document(app, secured=True)
    validate(told)
    assert told["openapi"] == "3.1.1"
    assert "/tools/odd%20%7Bname%7D%2Fx" in told["paths"]
    assert "/tools/secret" not in told["paths"]
    names = [item["post"]["operationId"] for item in told["paths"].values()]
    assert len(names) == len(set(names))
    assert "group_say_2" in names


def test_file_tools_are_valid() -> None:
    from examples.file_tools.app import app as files

    told = document(files)
    validate(told)
    body = told["paths"]["/tools/find-files"]["post"]["requestBody"]
    content = body["content"]["application/json"]
    (example,) = content["examples"].values()
    assert example["value"] == {"pattern": "*.py", "root": "src"}
    for item in told["paths"].values():
        content = item["post"]["requestBody"]["content"]["application/json"]
        for example in content.get("examples", {}).values():
            jsonschema.validate(example["value"], content["schema"])


def test_an_operation(app: Tooli) -> None:
    told = document(app)
    read = told["paths"]["/tools/read"]["post"]
    assert (read["operationId"], read["tags"]) == ("read", ["Reading"])
    assert (read["summary"], read["description"]) == ("Read it.", "Read it.\n\nAll of it.")
    assert read["requestBody"]["required"] is True
    examples = read["requestBody"]["content"]["application/json"]["examples"]
    assert [e["value"] for e in examples.values()] == [{"path": "a.md", "limit": 3, "deep": True}]
    assert read["x-tooli-annotations"] == ["read-only"]
    assert read["x-tooli-error-codes"] == {"E3001": "nothing"}
    assert read["x-tooli-command"] == "docs read"
    assert {"200", "400", "404", "422", "429", "500", "503"} <= set(read["responses"])
    assert "428" not in read["responses"]
    assert "401" not in read["responses"]
    wipe = told["paths"]["/tools/wipe"]["post"]
    assert {"428"} <= set(wipe["responses"])
    assert (wipe["x-tooli-scopes"], wipe["x-tooli-danger-level"]) == (["w"], "high")
    assert "428" in told["paths"]["/tools/ask"]["post"]["responses"]
    assert told["paths"]["/tools/say"]["post"]["deprecated"] is True
    assert told["paths"]["/tools/group/say"]["post"]["tags"] == ["group"]
    rows = told["paths"]["/tools/rows"]["post"]["responses"]["200"]["content"]
    assert {"application/json", "application/x-ndjson", "text/event-stream"} == set(rows)


def test_a_status_that_the_author_tells_of_is_there() -> None:
    app = Tooli("told")
    app.command("go", error_codes={"E2101": "ask first", "E3999": "mine"})(lambda: 1)
    assert "428" in document(app)["paths"]["/tools/go"]["post"]["responses"]


def test_a_type_that_contains_itself_lives_in_the_components(app: Tooli) -> None:
    told = document(app)
    text = str(told["paths"])
    assert "#/$defs/" not in text
    assert "$defs" not in text
    assert "wipe_Node" in told["components"]["schemas"]
    assert "wipe_result_Node" in told["components"]["schemas"]


def test_every_failure_is_shown_by_an_example_that_fits(app: Tooli) -> None:
    components = document(app, secured=True)["components"]
    shown: set[str] = set()
    schema = {"$ref": "#/components/schemas/Failure", "components": components}
    for response in components["responses"].values():
        for code, example in response["content"]["application/json"]["examples"].items():
            jsonschema.validate(example["value"], schema)
            shown.add(code)
    assert shown == {code for code, row in ERROR_CODES.items() if row[2] != 405}


def test_a_token_is_asked_for(app: Tooli) -> None:
    told = document(app, secured=True, server_url="https://x.example")
    assert told["security"] == [{"token": []}]
    assert told["servers"] == [{"url": "https://x.example"}]
    assert "401" in told["paths"]["/tools/read"]["post"]["responses"]


# ------------------------------------------------------------------ examples


def tool_of(fn):
    app = Tooli("one")
    app.command("it")(fn)
    tool = app.find("it")
    assert tool is not None
    return tool


def _many(
    first: str,
    rest: list[int],
    last: str,
    pair: tuple[int, str] = (0, ""),
    kind: Kind = Kind.A,
    word: Literal["x", "y"] = "x",
    user: dict[str, int] = {},  # noqa: B006
    flag: bool = True,
    many: Annotated[list[float] | None, Option("--many", "-m")] = None,
    hexed: Annotated[int, Option(parser=lambda text: int(text, 16))] = 0,
    when: Annotated[str | None, Option()] = None,
) -> None: ...


ABC = ["a", "1", "b"]
GIVEN = {"first": "a", "rest": [1], "last": "b"}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["a", "1", "b"], {"first": "a", "rest": [1], "last": "b"}),
        (["a", "1", "2", "b"], {"first": "a", "rest": [1, 2], "last": "b"}),
        (["--", "-a", "1", "b"], {"first": "-a", "rest": [1], "last": "b"}),
        (["a", "1", "-", "--no-flag"], {"first": "a", "rest": [1], "last": "-", "flag": False}),
        (
            ["a", "1", "b", "--pair", "2", "x", "--kind=b", "--word", "y", "-m", "1", "-m", "2.5"],
            {
                "first": "a",
                "rest": [1],
                "last": "b",
                "pair": [2, "x"],
                "kind": "b",
                "word": "y",
                "many": [1.0, 2.5],
            },
        ),
        ([*ABC, "--user", '{"x":1}'], {**GIVEN, "user": {"x": 1}}),
        ([*ABC, "--user.x", "1"], {**GIVEN, "user": {"x": "1"}}),
        ([*ABC, "--hexed", "ff"], {**GIVEN, "hexed": "ff"}),
        *((words, None) for words in (["a"], ["a", "x", "b"], [*ABC, "--kind", "z"])),
        *((words, None) for words in ([*ABC, "--zz"], [*ABC, "--user", "{"])),
        *((words, None) for words in ([*ABC, "--word"], [*ABC, "--pair", "1"])),
    ],
)
def test_an_examples_words_as_arguments(words: list[str], arguments) -> None:
    assert parse_example(tool_of(_many), words) == arguments


def test_surplus_words_are_unclear() -> None:
    assert parse_example(tool_of(lambda: 1), ["x"]) is None

    def one(a: Annotated[str, Argument()]) -> None: ...

    assert parse_example(tool_of(one), ["x", "y"]) is None


def test_a_paginated_command_takes_pages() -> None:
    app = Tooli("app", version="1")

    @app.command(paginated=True)
    def many() -> list[int]:
        return []

    @app.command()
    def few() -> list[int]:
        return []

    paths = build_openapi("app", "1", None, app.catalog)["paths"]
    named = {
        path: [one["name"] for one in text["post"]["parameters"] if "name" in one]
        for path, text in paths.items()
    }
    assert named == {"/tools/many": ["limit", "cursor"], "/tools/few": []}


def test_every_operation_takes_a_deadline_and_a_key() -> None:
    app = Tooli("app", version="1")
    app.command("few")(lambda: 1)
    app.command("many", paginated=True)(lambda: [1])
    document = build_openapi("app", "1", None, app.catalog)
    shared = document["components"]["parameters"]
    for message in document["paths"].values():
        taken = {one["$ref"].rpartition("/")[2] for one in message["post"]["parameters"][:9]}
        assert {"timeout", "Idempotency-Key"} <= taken <= shared.keys()
    assert (shared["timeout"]["in"], shared["Idempotency-Key"]["in"]) == ("query", "header")
    assert [read_run_option("timeout", text)[1] for text in ("0.5", "10000000")] == [None, None]
    pattern = re.compile(shared["Idempotency-Key"]["schema"]["pattern"])
    for key in ("a", "order-7", '"order-7"', "a" * 255, '"', "", "a b", "é", "a" * 256):
        problems = read_options(b"", {b"idempotency-key": key.encode()})[1]
        assert bool(pattern.search(key)) == (not problems), key
