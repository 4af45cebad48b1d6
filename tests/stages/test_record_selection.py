"""Result options, filters, field selection and concise results."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, Field
from tests.stages.stage_calls import make_call, pass_through
from typing_extensions import TypedDict

from tooli import Detail, Next, SecretInput, Tooli
from tooli.core.call import Call, Failed, Ok
from tooli.errors import InternalError
from tooli.records.call_options import read_result_options
from tooli.schema.json_schema import output_schema
from tooli.stages.record_selection import filter_records, open_record_flow, select_fields
from tooli.testing import Case, assert_parity, invoke


def users() -> list[dict[str, Any]]:
    return [{"name": "Ada", "age": 36}, {"name": "Bob", "age": 20}]


def stream_users() -> Iterator[dict[str, Any]]:
    yield from users()


def opened(fn: Any = users, **options: Any) -> Call:
    """Return a call after the stage `record_flow`."""
    call = make_call(fn, options={"result_options": read_result_options(options)})
    return pass_through(open_record_flow, call)[0]


class TestRecordFlow:
    def test_valid_options_are_compiled(self) -> None:
        call = opened(filter="age > 30", fields="name")
        assert call.flow is not None
        assert call.flow.predicate is not None
        assert call.flow.projection is not None
        assert call.problems == ()

    @pytest.mark.parametrize(
        ("options", "code"),
        [
            ({"filter": "age >"}, "E1040"),
            ({"fields": "a..b"}, "E1041"),
            ({"cursor": "forged"}, "E1042"),
            ({"limit": "many"}, "E1007"),
        ],
    )
    def test_invalid_option_is_a_problem(self, options: dict[str, str], code: str) -> None:
        assert [problem.code for problem in opened(**options).problems] == [code]

    def test_result_that_is_not_a_list_cannot_be_filtered(self) -> None:
        def number() -> int:
            return 1

        (problem,) = opened(number, filter="age > 30").problems
        assert problem.message == "The result is not a list and cannot be filtered"

    def test_option_with_the_name_of_a_parameter_is_reported_with_a_prefix(self) -> None:
        def find(cursor: str = "") -> list[int]:
            return []

        (problem,) = opened(find, cursor="forged").problems
        assert problem.field == "tooli_cursor"


class TestFilter:
    def test_list_is_filtered(self) -> None:
        call = opened(filter="age > 30")
        assert pass_through(filter_records, call, Ok(users()))[1] == Ok(users()[:1])

    def test_stream_is_filtered(self) -> None:
        app = Tooli("a")
        app.command("users")(stream_users)
        assert app.options(filter="age > 30").call("users").unwrap() == users()[:1]

    def test_list_is_unchanged_without_a_filter(self) -> None:
        assert pass_through(filter_records, make_call(), Ok([1]))[1] == Ok([1])

    @pytest.mark.parametrize(
        ("value", "warnings"),
        [(7, ["The result is not a list, so it was not filtered."]), (None, [])],
    )
    def test_non_list_result_is_unchanged(self, value: Any, warnings: list[str]) -> None:
        call = opened(lambda: None, filter="age > 30")
        assert pass_through(filter_records, call, Ok(value))[1] == Ok(value)
        assert call.warnings == warnings

    @pytest.mark.parametrize(
        "condition",
        [
            'key startswith "Zx9"',
            'key contains "pLmT"',
            'key > "Zx8"',
            "pin >= 70000000",
            'parts[0].key endswith "LmT"',
        ],
    )
    @pytest.mark.parametrize("is_stream", [False, True])
    def test_filter_does_not_reveal_secrets(self, condition: str, is_stream: bool) -> None:
        """A caller cannot guess a secret by the records that match."""

        def keys(secret: SecretInput[str], pin: SecretInput[int]) -> list[dict[str, Any]]:
            key = secret.reveal()
            hidden = {"n": 1, "key": key, "pin": pin.reveal(), "parts": [{"key": key}]}
            return [hidden, {"n": 2, "key": "A", "pin": 1, "parts": []}]

        def stream_keys(
            secret: SecretInput[str], pin: SecretInput[int]
        ) -> Iterator[dict[str, Any]]:
            yield from keys(secret, pin)

        app = Tooli("a")
        app.command("keys")(stream_keys if is_stream else keys)
        app.command("other")(lambda: None)
        line = ["keys", "env:KEY", "env:PIN", "--json", "--filter"]
        env = {"KEY": "Zx9QpLmT", "PIN": "77000001"}
        result = invoke(app, *line, condition, env=env).envelope["result"]
        assert [record["n"] for record in result] == []
        (shown,) = invoke(app, *line, "n == 1", env=env).envelope["result"]
        assert shown == {"n": 1, "key": "***", "pin": "***", "parts": [{"key": "***"}]}

    def test_filtered_records_with_secrets_are_passed_on_unchanged(self) -> None:
        @dataclasses.dataclass
        class Row:
            name: str
            tags: Any

        def rows(secret: SecretInput[str]) -> list[Row]:
            return [Row(f"x {secret.reveal()}", []), Row("y", iter("ab"))]

        app = Tooli("a")
        app.command("rows")(rows)
        call = app.options(filter='name startswith "x"').call
        assert call("rows", secret="hunter22").unwrap() == [Row("x hunter22", [])]
        call = app.options(filter='name == "y"').call
        assert call("rows", secret="hunter22").unwrap() == [{"name": "y", "tags": ["a", "b"]}]

    def test_failure_is_unchanged(self) -> None:
        failed = Failed(InternalError("no"))
        assert pass_through(filter_records, opened(filter="age > 30"), failed)[1] is failed


class TestFieldSelection:
    def test_fields_of_list_records_are_selected(self) -> None:
        found = pass_through(select_fields, opened(fields="name"), Ok(users()))[1]
        assert found == Ok([{"name": "Ada"}, {"name": "Bob"}])

    def test_fields_of_an_object_are_selected(self) -> None:
        call = opened(lambda: None, fields="name")
        assert pass_through(select_fields, call, Ok(users()[0]))[1] == Ok({"name": "Ada"})

    def test_fields_of_stream_records_are_selected(self) -> None:
        app = Tooli("a")
        app.command("users")(stream_users)
        assert app.options(fields="name").call("users").unwrap() == [
            {"name": "Ada"},
            {"name": "Bob"},
        ]

    @pytest.mark.parametrize("outcome", [Ok(None), Failed(InternalError("no"))])
    def test_none_and_failures_are_unchanged(self, outcome: Any) -> None:
        assert pass_through(select_fields, opened(fields="name"), outcome)[1] is outcome

    def test_records_are_unchanged_without_a_selection(self) -> None:
        assert pass_through(select_fields, make_call(), Ok([1]))[1] == Ok([1])


# ------------------------------------------------------------------ concise


class File(TypedDict):
    path: str
    checksum: Annotated[str, Detail]


@dataclasses.dataclass
class Owner:
    name: str
    mail: Annotated[str | None, Detail] = None
    age: Annotated[int, Detail] | None = None


class Tree(BaseModel):
    name: str
    raw: dict[str, Any] = Field(default_factory=dict, json_schema_extra={"detail": True})
    owner: Owner | None = None
    inside: Annotated[Owner | None, Detail] = None
    children: list[Tree] = []
    by_name: dict[str, File] = {}
    pair: tuple[File, int] | None = None


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    name: Annotated[str, Detail]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


FILE: File = {"path": "a", "checksum": "c"}


def make_app() -> Tooli:
    app = Tooli("trees")

    @app.command()
    def files() -> list[File]:
        return [FILE, FILE]

    @app.command()
    def stream(count: int = 2) -> Iterator[File]:
        for _ in range(count):
            yield FILE

    @app.command()
    async def async_stream(count: int = 2) -> AsyncIterator[File]:
        for _ in range(count):
            yield FILE

    @app.command()
    async def asynchronous() -> File:
        return FILE

    @app.command()
    def tree() -> Tree:
        return Tree(
            name="top",
            raw={"checksum": 1},
            owner=Owner("Ada", "ada@example.org", 36),
            inside=Owner("Bob"),
            children=[Tree(name="leaf", raw={"x": 1}, owner=Owner("Cid", "c"))],
            by_name={"checksum": FILE},
            pair=(FILE, 1),
        )

    @app.command()
    def pet(which: str = "cat") -> Cat | Dog:
        return Cat(name="Tom") if which == "cat" else Dog(name="Rex")

    @app.command()
    def plain() -> dict[str, str]:
        return {"detail": "kept"}

    @app.command()
    def next_steps() -> Next[File]:
        return Next(FILE, "files", {}, why="to see all")

    @app.command()
    def extra() -> File:
        return {**FILE, "more": 1}  # type: ignore[typeddict-unknown-key]

    return app


CONCISE: list[tuple[str, dict[str, Any], Any]] = [
    ("files", {}, [{"path": "a"}, {"path": "a"}]),
    ("stream", {}, [{"path": "a"}, {"path": "a"}]),
    ("stream", {"count": 0}, []),
    ("async-stream", {}, [{"path": "a"}, {"path": "a"}]),
    ("asynchronous", {}, {"path": "a"}),
    (
        "tree",
        {},
        {
            "name": "top",
            "owner": {"name": "Ada"},
            "children": [
                {
                    "name": "leaf",
                    "owner": {"name": "Cid"},
                    "children": [],
                    "by_name": {},
                    "pair": None,
                }
            ],
            "by_name": {"checksum": {"path": "a"}},
            "pair": [{"path": "a"}, 1],
        },
    ),
    ("pet", {}, {"kind": "cat", "lives": 9}),
    ("pet", {"which": "dog"}, {"kind": "dog", "name": "Rex"}),
    ("plain", {}, {"detail": "kept"}),
    ("next-steps", {}, {"path": "a"}),
    ("extra", {}, {"path": "a", "more": 1}),
]


@pytest.mark.parametrize(("tool", "arguments", "expected"), CONCISE)
def test_every_interface_omits_the_same_fields(
    tool: str, arguments: dict[str, Any], expected: Any
) -> None:
    found = assert_parity(make_app(), Case(tool, arguments, {"concise": True}))
    assert found["result"] == expected


@pytest.mark.parametrize(("tool", "arguments", "expected"), CONCISE)
def test_every_result_is_valid_for_the_schema(
    tool: str, arguments: dict[str, Any], expected: Any
) -> None:
    app = make_app()
    schema = output_schema(app.find(tool))  # type: ignore[arg-type]
    assert schema is not None
    jsonschema.validate(expected, schema)
    jsonschema.validate(app.call(tool, **arguments).to_dict()["result"], schema)


def test_schema_marks_details() -> None:
    schema = output_schema(make_app().find("asynchronous"))  # type: ignore[arg-type]
    assert schema == {
        "type": "object",
        "properties": {"path": {"type": "string"}, "checksum": {"type": "string", "detail": True}},
        "required": ["path"],
    }


def test_default_response_has_all_fields() -> None:
    assert make_app().call("files").result == [FILE, FILE]
    assert invoke(make_app(), "files", "--json").result == [FILE, FILE]


def test_detailed_has_all_fields_and_the_schema() -> None:
    done = invoke(make_app(), "asynchronous", "--json", "--response-format", "detailed").envelope
    assert done["result"] == FILE
    assert done["meta"]["output_schema"]["properties"]["checksum"]["detail"] is True


def test_result_without_detail_fields_is_not_changed() -> None:
    app = Tooli("x")
    dog = Dog(name="Rex")

    @app.command()
    def get() -> Dog:
        return dog

    assert app.call("get", concise=True).result is dog


def test_plan_is_not_changed() -> None:
    found = make_app().call("files", concise=True, dry_run=True)
    assert found.result["tool"] == "trees.files"


def test_items_are_yielded_one_by_one() -> None:
    yielded: list[int] = []
    closed: list[bool] = []
    app = Tooli("x")

    @app.command()
    def count() -> Iterator[File]:
        try:
            for i in range(5):
                yielded.append(i)
                yield FILE
        finally:
            closed.append(True)

    items = app.options(concise=True).stream("count")
    assert next(items) == {"path": "a"}
    assert (yielded, closed) == ([0], [])
    items.close()
    assert closed == [True]


def test_async_items_are_yielded_one_by_one() -> None:
    async def first() -> tuple[Any, list[bool]]:
        closed: list[bool] = []
        app = Tooli("x")

        @app.command()
        async def count() -> AsyncIterator[File]:
            try:
                while True:
                    yield FILE
            finally:
                closed.append(True)

        items = app.options(concise=True).astream("count")
        item = await anext(items)
        await items.aclose()
        return item, closed

    assert asyncio.run(first()) == ({"path": "a"}, [True])


@pytest.mark.parametrize("mode", ["--jsonl", "--plain", "--text"])
def test_every_output_mode_omits_detail_fields(mode: str) -> None:
    app = make_app()
    for tool in ("files", "stream"):
        done = invoke(app, tool, mode, "--response-format", "concise")
        assert done.exit_code == 0
        assert "a" in done.stdout
        assert "checksum" not in done.stdout + done.stderr


def test_concise_applies_to_async_results_of_sync_functions() -> None:
    app = Tooli("x")

    async def one() -> File:
        return FILE

    async def many() -> AsyncIterator[File]:
        yield FILE

    def get() -> File:
        return one()  # type: ignore[return-value]

    def stream() -> Iterator[File]:
        return many()  # type: ignore[return-value]

    app.command()(get)
    app.command()(stream)
    assert assert_parity(app, Case("get", {}, {"concise": True}))["result"] == {"path": "a"}
    assert app.call("stream", concise=True).result == [{"path": "a"}]
    assert list(app.stream("stream", concise=True)) == [{"path": "a"}]
    assert asyncio.run(app.acall("stream", concise=True)).result == [{"path": "a"}]


def test_concise_applies_to_an_iterator_without_close() -> None:
    app = Tooli("x")

    def stream() -> Iterator[File]:
        return iter([FILE])

    app.command()(stream)
    assert app.call("stream", concise=True).result == [{"path": "a"}]
