"""The drivers: they pass a call through its stages to the function, and the outcome back."""

from __future__ import annotations

import gc
import pathlib
from typing import Annotated, Any

import pydantic
import pytest
import typer

from tooli import Argument, Context, Option
from tooli.core.call import PYTHON_CALLER, Call, Failed, Ok, Problem
from tooli.errors import AuthError, InputError, InternalError, NotFoundError
from tooli.pipeline.drivers import ONLY_BIND, Walk, bind, bind_arguments, run, stream
from tooli.schema import Converted
from tooli.schema.tool_reader import read_tool


def call_of(fn: Any, **arguments: Any) -> Call:
    return Call(read_tool(fn, app="app", path=("tool",), kwargs={}), arguments, PYTHON_CALLER, [])


def drain(items) -> tuple[list[Any], Any]:
    """Return all items of a stream, and its outcome."""
    found = []
    while True:
        try:
            found.append(next(items))
        except StopIteration as ended:
            return found, ended.value


class Log:
    """Stages that record when a call and its outcome pass them."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def stage(self, name: str):
        def passing(call):
            self.seen.append(f"{name} in")
            try:
                outcome = yield call
            finally:
                self.seen.append(f"{name} out")
            return outcome

        return passing

    def tool(self, result: Any = 1):
        def fn():
            self.seen.append("tool")
            return result

        return fn


@pytest.fixture
def log() -> Log:
    return Log()


class TestStages:
    def test_call_and_outcome_pass_all_stages(self, log) -> None:
        outcome = run(call_of(log.tool(7)), [log.stage("a"), bind, log.stage("b")])
        assert outcome == Ok(7)
        assert log.seen == ["a in", "b in", "tool", "b out", "a out"]

    def test_call_without_stages_runs_the_function(self, log) -> None:
        assert run(call_of(log.tool(7)), []) == Ok(7)

    def test_a_stage_may_change_the_call(self) -> None:
        def double(call):
            return (yield call.replace(arguments={"n": call.arguments["n"] * 2}))

        assert run(call_of(lambda n: n, n=3), [double]) == Ok(6)

    def test_a_stage_may_change_the_outcome(self) -> None:
        def wrap(call):
            outcome = yield call
            return Ok([outcome.value])

        assert run(call_of(lambda: 1), [wrap, wrap]) == Ok([[1]])

    def test_a_stage_may_return_an_outcome_without_the_call(self, log) -> None:
        def answer(call):
            return Ok("from the cache")
            yield call

        outcome = run(call_of(log.tool()), [log.stage("a"), answer, log.stage("b")])
        assert outcome == Ok("from the cache")
        assert log.seen == ["a in", "a out"]

    def test_a_stage_may_reject_the_call(self, log) -> None:
        def refuse(call):
            raise AuthError("no")
            yield call

        outcome = run(call_of(log.tool()), [log.stage("a"), refuse, log.stage("b")])
        assert isinstance(outcome, Failed)
        assert isinstance(outcome.error, AuthError)
        assert log.seen == ["a in", "a out"]

    def test_a_stage_that_raises_after_the_call_fails_the_call(self, log) -> None:
        def fail_afterwards(call):
            yield call
            raise NotFoundError("gone")

        outcome = run(call_of(log.tool()), [log.stage("a"), fail_afterwards])
        assert isinstance(outcome.error, NotFoundError)
        assert log.seen == ["a in", "tool", "a out"]

    def test_a_stage_may_replace_a_failure(self) -> None:
        def recover(call):
            yield call
            return Ok("recovered")

        assert run(call_of(lambda: 1 / 0), [recover]) == Ok("recovered")

    def test_a_stage_that_yields_twice_is_an_internal_error(self, log) -> None:
        def yield_twice(call):
            yield call
            yield call

        outcome = run(call_of(log.tool()), [log.stage("a"), yield_twice])
        assert isinstance(outcome.error, InternalError)
        assert "yielded twice" in outcome.error.message
        assert log.seen == ["a in", "tool", "a out"]

    def test_a_stage_that_returns_nothing_is_an_internal_error(self) -> None:
        def return_nothing(call):
            yield call

        outcome = run(call_of(lambda: 1), [return_nothing])
        assert isinstance(outcome.error, InternalError)

    def test_a_stage_that_returns_nothing_without_yielding_prevents_the_call(self, log) -> None:
        def return_nothing(call):
            return
            yield call

        outcome = run(call_of(log.tool()), [return_nothing, log.stage("guard")])
        assert isinstance(outcome, Failed)
        assert "tool" not in log.seen

    def test_walk_without_an_outcome_is_an_error(self) -> None:
        with Walk(call_of(lambda: 1), []) as walk:
            pass
        assert "never run" in walk.take_outcome().error.message

    def test_exit_in_a_stage_is_an_outcome(self, log) -> None:
        def exit_early(call):
            raise SystemExit(3)
            yield call

        outcome = run(call_of(log.tool()), [log.stage("a"), exit_early])
        assert outcome.error.exit_code == 3
        assert log.seen == ["a in", "a out"]

    @pytest.mark.parametrize("stages", [[bind], ONLY_BIND], ids=["walk", "fast path"])
    def test_keyboard_interrupt_is_raised(self, stages) -> None:
        def tool():
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(call_of(tool), stages)

    def test_keyboard_interrupt_passes_the_stages(self, log) -> None:
        def tool():
            raise KeyboardInterrupt

        seen = []

        def record_outcome(call):
            outcome = yield call
            seen.append(outcome.error.code)
            return outcome

        with pytest.raises(KeyboardInterrupt):
            run(call_of(tool), [record_outcome])
        assert seen == ["E4130"]


@pytest.mark.parametrize("stages", [[bind], ONLY_BIND], ids=["walk", "fast path"])
class TestRunning:
    """The fast path returns the same outcomes as a walk through the stages."""

    def test_returned_value_is_the_outcome(self, stages) -> None:
        assert run(call_of(lambda n=2: n * 2), stages) == Ok(4)

    def test_exception_becomes_the_error(self, stages) -> None:
        outcome = run(call_of(lambda: 1 / 0), stages)
        assert outcome.error.message == "ZeroDivisionError: division by zero"

    def test_all_invalid_arguments_are_listed(self, stages) -> None:
        outcome = run(call_of(lambda n=1: n, n="x", m=1), stages)
        assert [e["code"] for e in outcome.error.details["errors"]] == ["E1004", "E1003"]

    @pytest.mark.parametrize(("code", "ok"), [(0, True), (None, True), (3, False), ("bye", False)])
    def test_exit_code_determines_success(self, stages, code, ok) -> None:
        def tool():
            raise SystemExit(code)

        outcome = run(call_of(tool), stages)
        assert isinstance(outcome, Ok) is ok

    def test_generator_items_are_collected(self, stages) -> None:
        def tool():
            yield from (1, 2)

        assert run(call_of(tool), stages) == Ok([1, 2])

    def test_failed_generator_reports_the_number_of_items(self, stages) -> None:
        def tool():
            yield from range(10)
            raise NotFoundError("gone", details={"at": "end"})

        error = run(call_of(tool), stages).error
        assert isinstance(error, NotFoundError)
        assert error.details == {"at": "end", "items_before_failure": 10}

    def test_generator_that_fails_before_its_first_item_reports_no_number(self, stages) -> None:
        def tool():
            raise NotFoundError("gone")
            yield

        assert run(call_of(tool), stages).error.details is None

    def test_iterators_are_streams_and_files_are_not(self, stages, tmp_path) -> None:
        assert run(call_of(lambda: map(str, [1])), stages) == Ok(["1"])
        file = tmp_path / "x"
        file.touch()
        with file.open() as opened:
            assert run(call_of(lambda: opened), stages) == Ok(opened)

    def test_coroutine_is_awaited(self, stages) -> None:
        async def tool(n=1):
            return n

        assert run(call_of(tool), stages) == Ok(1)

    def test_async_generator_items_are_collected(self, stages) -> None:
        async def tool():
            yield 1
            yield 2

        assert run(call_of(tool), stages) == Ok([1, 2])

    def test_failed_async_generator_reports_the_number_of_items(self, stages) -> None:
        async def tool():
            yield 1
            raise NotFoundError("gone")

        assert run(call_of(tool), stages).error.details == {"items_before_failure": 1}


class TestStreaming:
    def test_items_are_yielded_one_by_one(self) -> None:
        made = []

        def tool():
            for i in range(3):
                made.append(i)
                yield i

        items = stream(call_of(tool), ONLY_BIND)
        assert next(items) == 0
        assert made == [0]
        assert drain(items) == ([1, 2], Ok(None))

    def test_a_tool_that_does_not_stream_yields_no_items(self) -> None:
        assert drain(stream(call_of(lambda: [1, 2]), [bind])) == ([], Ok([1, 2]))

    def test_sync_stream_yields_the_items_of_an_async_generator(self) -> None:
        async def tool():
            yield 1
            yield 2

        assert drain(stream(call_of(tool), [bind])) == ([1, 2], Ok(None))

    def test_a_failure_in_the_middle_keeps_earlier_items(self) -> None:
        def tool():
            yield 1
            raise NotFoundError("gone")

        found, outcome = drain(stream(call_of(tool), [bind]))
        assert found == [1]
        assert isinstance(outcome.error, NotFoundError)

    def test_rejected_call_yields_no_items(self, log) -> None:
        def refuse(call):
            raise AuthError("no")
            yield call

        found, outcome = drain(stream(call_of(log.tool()), [log.stage("a"), refuse]))
        assert found == []
        assert isinstance(outcome.error, AuthError)
        assert log.seen == ["a in", "a out"]

    def test_stream_closed_early_closes_the_function_and_the_stages(self, log) -> None:
        def tool():
            try:
                yield 1
                yield 2
            finally:
                log.seen.append("tool closed")

        seen = []

        def record_outcome(call):
            outcome = yield call
            seen.append(type(outcome))
            return outcome

        items = stream(call_of(tool), [log.stage("a"), record_outcome])
        assert next(items) == 1
        items.close()
        assert log.seen == ["a in", "tool closed", "a out"]
        assert seen == [Failed]

    def test_an_async_stream_closed_early_closes_the_function(self, log) -> None:
        async def tool():
            try:
                yield 1
                yield 2
            finally:
                log.seen.append("tool closed")

        items = stream(call_of(tool), [log.stage("a")])
        assert next(items) == 1
        items.close()
        assert log.seen == ["a in", "tool closed", "a out"]

    def test_stream_that_is_never_started_runs_no_stage(self, log) -> None:
        stream(call_of(log.tool()), [log.stage("a")]).close()
        assert log.seen == []


def test_call_leaves_no_reference_cycle() -> None:
    """A large result is freed as soon as the last reference to it is gone."""
    import weakref

    class Big:
        pass

    call = call_of(Big)
    outcome = run(call, [bind])
    ref = weakref.ref(outcome.value)
    gc.disable()
    try:
        del outcome
        assert ref() is None
    finally:
        gc.enable()


# ------------------------------------------------------------------ binding


class Order(pydantic.BaseModel):
    item: str
    count: Annotated[int, pydantic.Field(gt=0)] = 1

    @pydantic.model_validator(mode="after")
    def few_cakes(self):
        if self.item == "cake" and self.count > 3:
            raise ValueError("too many cakes")
        return self


def unbound_call(fn, *, keywords=None, problems=(), **arguments) -> Call:
    tool = read_tool(fn, app="app", path=("tool",), kwargs=keywords or {})
    return Call(tool, arguments, PYTHON_CALLER, [], problems=problems)


def binding_error(call: Call) -> InputError:
    with pytest.raises(InputError) as caught:
        bind_arguments(call)
    return caught.value


def find(pattern: str, root: pathlib.Path = pathlib.Path(), depth: float = 3): ...


class TestBinding:
    def test_values_are_converted_and_defaults_added(self) -> None:
        assert bind_arguments(unbound_call(find, pattern="*.py", depth=5)) == {
            "pattern": "*.py",
            "root": pathlib.Path(),
            "depth": 5.0,
        }

    def test_default_factory_is_called_for_each_call(self) -> None:
        def tool(tags: Annotated[list[str], Option(default_factory=list)]): ...

        call = unbound_call(tool)
        assert bind_arguments(call)["tags"] is not bind_arguments(call)["tags"]

    def test_a_default_list_is_not_shared(self) -> None:
        def tool(tags: list[str] = ["a"]): ...  # noqa: B006

        bind_arguments(unbound_call(tool))["tags"].append("b")
        assert bind_arguments(unbound_call(tool)) == {"tags": ["a"]}

    def test_context_parameters_are_injected(self) -> None:
        def tool(ctx: Context, click_ctx: typer.Context): ...

        call = unbound_call(tool)
        bound = bind_arguments(call)
        assert isinstance(bound["ctx"], Context)
        assert bound["ctx"].tool == "app.tool"
        assert isinstance(bound["click_ctx"], typer.Context)
        assert bound["click_ctx"].info_name == "tool"

    def test_typer_context_passed_by_typer_is_kept(self) -> None:
        def tool(click_ctx: typer.Context): ...

        typer_ctx = object()
        assert bind_arguments(unbound_call(tool, click_ctx=Converted(typer_ctx))) == {
            "click_ctx": typer_ctx
        }

    def test_injected_parameter_cannot_be_passed(self) -> None:
        def tool(ctx: Context): ...

        assert binding_error(unbound_call(tool, ctx="mine")).code == "E1004"


class TestBindingErrors:
    def test_missing_argument_is_an_error(self) -> None:
        error = binding_error(unbound_call(find))
        assert (error.code, error.field) == ("E1002", "pattern")
        assert error.message == "'pattern' is required: text"

    def test_all_problems_are_listed(self) -> None:
        error = binding_error(unbound_call(find, patern="x", root=3, depth="deep"))
        assert (error.code, error.field) == ("E1004", "patern")
        assert error.message.endswith("(and 2 more)")
        found = [(e["field"], e["code"]) for e in error.details["errors"]]
        assert found == [
            ("patern", "E1004"),
            ("root", "E1003"),
            ("depth", "E1003"),
        ]

    def test_misspelled_parameter_is_not_reported_as_missing(self) -> None:
        assert len(binding_error(unbound_call(find, patern="x")).details["errors"]) == 1
        assert len(binding_error(unbound_call(find, zzzzzzz="x")).details["errors"]) == 2

    def test_invalid_default_is_an_error(self) -> None:
        def tool(n: Annotated[int, Option(min=3)] = 1): ...

        assert binding_error(unbound_call(tool)).field == "n"

    def test_errors_in_a_model_have_the_path_of_the_field(self) -> None:
        def tool(order: Order): ...

        error = binding_error(unbound_call(tool, order={"count": 0}))
        assert [e["field"] for e in error.details["errors"]] == ["order.item", "order.count"]

    def test_surface_problems_without_a_field_are_listed_last(self) -> None:
        problems = (Problem("E1005", None, "too many"), Problem("E1006", "root", "no value"))
        error = binding_error(unbound_call(find, problems=problems))
        assert [e["code"] for e in error.details["errors"]] == ["E1006", "E1002", "E1005"]
        assert error.details["errors"][-1] == {"code": "E1005", "message": "too many"}

    def test_problems_are_listed_in_the_order_of_typer(self) -> None:
        """Options as they were typed, then arguments, then missing options."""

        def tool(a: int, b: Annotated[int, Option()], c: int = 1, d: int = 1): ...

        error = binding_error(unbound_call(tool, a="x", d="x", c="x"))
        assert [e["field"] for e in error.details["errors"]] == ["d", "c", "a", "b"]


class TestInputModel:
    """`input_model=`: the fields are the parameters, the function takes the model."""

    def order(self, order: Order, ctx: Context): ...

    def test_fields_become_the_model(self) -> None:
        call = unbound_call(self.order, keywords={"input_model": Order}, item="tea", count="2")
        assert call.tool.param_names == {"item", "count"}
        bound = bind_arguments(call)
        assert bound["order"] == Order(item="tea", count=2)
        assert isinstance(bound["ctx"], Context)

    def test_each_field_is_checked(self) -> None:
        error = binding_error(unbound_call(self.order, keywords={"input_model": Order}, count=0))
        assert {e["field"] for e in error.details["errors"]} == {"item", "count"}

    def test_model_validator_is_checked(self) -> None:
        error = binding_error(
            unbound_call(self.order, keywords={"input_model": Order}, item="cake", count=9)
        )
        assert error.field is None
        assert "too many cakes" in error.message


def test_positional_argument_with_a_default_can_be_omitted() -> None:
    def tool(a: Annotated[int, Argument()] = 1, *, b: str | None = None): ...

    assert bind_arguments(unbound_call(tool)) == {"a": 1, "b": None}
    assert bind_arguments(unbound_call(tool, b="x")) == {"a": 1, "b": "x"}
