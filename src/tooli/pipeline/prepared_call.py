"""PreparedCall: a call with its stages, ready to run once. Every server surface uses it.

    prepared.run() │ await prepared.arun()          ─▶ Presented
    prepared.stream() │ prepared.astream(ended)     ─▶ items as JSON, then Presented
    prepared.result(), items() and their async forms ─▶ Python values, for `app.call`

A surface gets only presented output. Python code that calls `app.call` gets the values themselves,
in a TooliResult. `app.call` never raises; `TooliResult.unwrap` does.
"""

from __future__ import annotations

import sys
from time import perf_counter

from tooli.core import Record
from tooli.core.call import Failed, Ok, RedactionPolicy
from tooli.core.current_call import aiterate_within, current_call, iterate_within
from tooli.pipeline.drivers import is_async, run, stream
from tooli.pipeline.present import (
    ItemPresenter,
    Presented,
    build_meta,
    encode_envelope,
    for_caller,
    present_error,
)
from tooli.pipeline.stdout_capture import StdoutCapture, attach_output

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
    from typing import Any, Generic, NoReturn, TypeVar

    from tooli.core.call import Call, Outcome, Stage
    from tooli.core.protocols import JsonObject
    from tooli.errors import ToolError

    T = TypeVar("T")

    class _GenericBase(Generic[T]): ...

else:  # `typing` takes too long to import, so TooliResult[T] is TooliResult at run time

    class _GenericBase:
        __slots__ = ()

        def __class_getitem__(cls, item):
            return cls

    T = None


class PreparedCall:
    """A call that is ready to run."""

    __slots__ = ("_call", "_stages", "_started")

    def __init__(self, call: Call, stages: tuple[Stage, ...], started: float | None = None) -> None:
        self._call = call
        self._stages = stages
        self._started = perf_counter() if started is None else started

    @property
    def is_async(self) -> bool:
        """True if the tool's function, or a dependency of it, runs on an event loop."""
        return self._call.tool.needs_loop or is_async(self._call.tool.fn)

    def milliseconds(self) -> int:
        """Return how long the call has taken so far."""
        return int((perf_counter() - self._started) * 1000)

    # -------------------------------------------------------------- for surfaces

    def run(self) -> Presented:
        """Run the call in this thread."""
        with self._capture() as printed:
            outcome = self._run()
        return self._present(self._attach(outcome, printed))

    async def arun(self) -> Presented:
        """Run the call on this event loop: async functions on it, others in a thread."""
        with self._capture() as printed:
            outcome = await self._arun()
        return self._present(self._attach(outcome, printed))

    def _capture(self) -> StdoutCapture:
        return StdoutCapture(keeps_stdout=self._call.tool.returns_printed_text)

    def _attach(self, outcome: Outcome, printed: StdoutCapture) -> Outcome:
        """Return the outcome with what the call has printed."""
        return attach_output(outcome, printed.text(), printed.stderr_texts, self._call)

    def fail(self, failure: BaseException) -> Presented:
        """Return the answer for a call that ended with an exception and has no outcome."""
        return self._present(_failed_outcome(failure, self._call))

    def stream(self) -> Generator[bytes, None, Presented]:
        """Run the call in this thread; yield its items as JSON and return the end of the answer.

        A list that the tool returns instead of yielding its items is sent item by item as well.
        """
        presenter = ItemPresenter(self._call)
        items = iterate_within(self._call, stream(self._call, self._stages))
        try:
            while True:
                yield presenter.encode(next(items))
        except StopIteration as end:
            outcome: Outcome = end.value
        finally:
            items.close()
        for item in _remaining_items(outcome):
            yield presenter.encode(item)
        return self._present_end(outcome)

    async def astream(self, ended: list[Presented]) -> AsyncGenerator[bytes]:
        """Run the call on this event loop; yield its items as JSON.

        The end of the answer is appended to `ended`: async generators cannot return a value.
        """
        presenter = ItemPresenter(self._call)
        outcomes: list[Outcome] = []
        items = self._astream(outcomes)
        try:
            async for item in items:
                yield presenter.encode(item)
        finally:
            await items.aclose()
        for item in _remaining_items(outcomes[0]):
            yield presenter.encode(item)
        ended.append(self._present_end(outcomes[0]))

    def _astream(self, outcomes: list[Outcome]) -> AsyncGenerator[Any]:
        from tooli.pipeline import async_drivers

        items = async_drivers.stream(self._call, self._stages, outcomes)
        return aiterate_within(self._call, items)

    def _present(self, outcome: Outcome) -> Presented:
        request = self._call.request
        if request is not None:
            request.end_call(outcome, self._call)
        return Presented(outcome, self._call, self.milliseconds)

    def _present_end(self, outcome: Outcome) -> Presented:
        """Return the end of a stream, whose items have been sent."""
        return self._present(outcome.with_value(None))

    def _run(self) -> Outcome:
        token = current_call.set(self._call)
        try:
            return run(self._call, self._stages)
        except KeyboardInterrupt as stop:  # from the tool: Ctrl-C interrupts only the main thread
            return _failed_outcome(stop, self._call)
        finally:
            current_call.reset(token)

    async def _arun(self) -> Outcome:
        from tooli.pipeline import async_drivers

        token = current_call.set(self._call)
        try:
            return await async_drivers.run(self._call, self._stages)
        except KeyboardInterrupt as stop:  # it would end the event loop
            return _failed_outcome(stop, self._call)
        finally:
            current_call.reset(token)

    # -------------------------------------------------------------- for Python code

    def result(self) -> TooliResult[Any]:
        """Run the call; return its value or its error, with `meta`."""
        token = current_call.set(self._call)
        try:
            return self._to_result(run(self._call, self._stages))
        finally:
            current_call.reset(token)

    async def aresult(self) -> TooliResult[Any]:
        """Run the call on this event loop; return its value or its error, with `meta`."""
        from tooli.pipeline import async_drivers

        token = current_call.set(self._call)
        try:
            return self._to_result(await async_drivers.run(self._call, self._stages))
        finally:
            current_call.reset(token)

    def items(self) -> Generator[Any, None, None]:
        """Run the call and yield its items. Raises the ToolError if it fails."""
        items = stream(self._call, self._stages)
        outcome = yield from iterate_within(self._call, items)
        yield from _remaining_items(outcome)
        if isinstance(outcome, Failed):
            self._raise_presented(outcome.error)

    async def aitems(self) -> AsyncGenerator[Any]:
        """Run the call on this event loop and yield its items. Raises the ToolError if it fails."""
        outcomes: list[Outcome] = []
        items = self._astream(outcomes)
        try:
            async for item in items:
                yield item
        finally:
            await items.aclose()
        for item in _remaining_items(outcomes[0]):
            yield item
        if isinstance(outcomes[0], Failed):
            self._raise_presented(outcomes[0].error)

    def _raise_presented(self, error: ToolError) -> NoReturn:
        """Raise an error. If it contains a secret, raise a redacted copy without its cause."""
        localized = for_caller(error, self._call)
        presented = present_error(localized, self._call, self._call.warnings)
        if presented is error:
            raise error
        presented.args = (presented.message,)
        vars(presented).pop("__notes__", None)
        raise presented from (None if self._call.secrets else error.__cause__)

    def _to_result(self, outcome: Outcome) -> TooliResult[Any]:
        call = self._call
        value: Any = outcome.value
        error = None
        if type(outcome) is not Ok:
            assert isinstance(outcome, Failed)
            error = to_tooli_error(for_caller(outcome.error, call), call, call.warnings)
        meta = build_meta(call, int((perf_counter() - self._started) * 1_000_000) / 1000)
        result: TooliResult[Any] = TooliResult(error is None, value, error, meta)
        if call.secrets or call.policy != "standard":
            return result.with_output_policy(call)
        return result


def _failed_outcome(exc: BaseException, call: Call) -> Outcome:
    from tooli.pipeline.failure import to_outcome

    return to_outcome(exc, call=call)


def _remaining_items(outcome: Outcome) -> Iterator[Any]:
    """Yield the items of a value that a tool returned instead of streaming it."""
    value: Any = outcome.value
    if type(value) in (list, tuple):
        yield from value
    elif type(value) in (set, frozenset):
        from tooli.text.jsonable import sort_set

        yield from sort_set(value)
    elif value is not None:
        yield value


# ------------------------------------------------------------------ results for Python code


class _DataclassAttribute:
    """An attribute that `dataclasses` reads, so that `asdict` and `replace` accept a Record.

    It is taken from a dataclass with the same fields, which is made when `dataclasses` first reads
    the attribute: importing it takes longer than most calls. The fields `hidden` are not part of
    `asdict`; `replace` keeps them.
    """

    def __init__(self, name: str, *hidden: str) -> None:
        self._name, self._hidden = name, hidden
        self._value: object = None

    def __get__(self, instance: object, owner: type[Record]) -> Any:
        if self._value is None:
            dataclasses = sys.modules.get("dataclasses")
            if dataclasses is None:  # so nothing that uses dataclasses asks
                raise AttributeError(self._name)
            names: tuple[str, ...] = getattr(owner, "__match_args__", ())
            fields: list[tuple[str, Any, Any]] = [
                (name, dataclasses.InitVar[object], dataclasses.field(default=None))
                if name in self._hidden
                else (name, object, dataclasses.field())
                for name in names
            ]
            same = dataclasses.make_dataclass(owner.__name__, fields, kw_only=True, frozen=True)
            self._value = getattr(same, self._name)
        return self._value


class TooliError(Record):
    """An error as a value: the fields of `error` in the envelope, and the exception itself."""

    __dataclass_fields__ = _DataclassAttribute("__dataclass_fields__", "source")
    __dataclass_params__ = _DataclassAttribute("__dataclass_params__", "source")

    code: str
    category: str
    message: str
    suggestion: Mapping[str, Any] | None = None
    is_retryable: bool = False
    field: str | None = None
    details: Mapping[str, Any] | None = None
    source: ToolError | None = None

    def __repr__(self) -> str:
        """Return a representation without `source`, which may contain secrets."""
        names = [name for name in type(self).__match_args__ if name != "source"]
        fields = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{type(self).__name__}({fields})"

    def to_exception(self) -> ToolError:
        """Return the error as an exception of its class."""
        if self.source is not None:
            return self.source
        from tooli.errors import error_class_for, restore_error

        return restore_error(error_class_for(self.code, self.category), self.to_dict())

    def to_dict(self) -> JsonObject:
        """Return the error as in the envelope: in fixed order, without empty fields."""
        fields: dict[str, Any] = {
            "code": self.code,
            "category": self.category,
            "message": self.message,
            "field": self.field,
            "suggestion": dict(self.suggestion) if self.suggestion else None,
            "is_retryable": self.is_retryable,
            "details": dict(self.details) if self.details else None,
        }
        return {name: value for name, value in fields.items() if value is not None}


class TooliResult(Record, _GenericBase[T]):
    """The result of a call: `ok`, and a result or an error."""

    __dataclass_fields__ = _DataclassAttribute("__dataclass_fields__", "_output_policy")
    __dataclass_params__ = _DataclassAttribute("__dataclass_params__", "_output_policy")

    ok: bool
    result: T | None = None
    error: TooliError | None = None
    meta: Mapping[str, Any] = {}
    _output_policy: RedactionPolicy | None = None  # for output that is made from the result

    def _values(self) -> tuple[object, ...]:
        """Return the fields that are compared, shown and pickled."""
        return (self.ok, self.result, self.error, self.meta)

    def __repr__(self) -> str:
        names = ("ok", "result", "error", "meta")
        fields = zip(names, self._values(), strict=True)
        return f"TooliResult({', '.join([f'{name}={value!r}' for name, value in fields])})"

    def unwrap(self) -> T:
        """Return the result, or raise the ToolError."""
        if self.error is not None:
            raise self.error.to_exception()
        return self.result  # pyright: ignore[reportReturnType]

    def with_output_policy(self, source: Call | RedactionPolicy) -> TooliResult[T]:
        """Return a copy with the policy of a call for output that is made from it."""
        policy = RedactionPolicy(source.policy, source.secrets, source.caller)
        return self.replace(_output_policy=policy)

    def to_dict(self) -> JsonObject:
        """Return the envelope as JSON values."""
        from json import loads

        return loads(self.model_dump_json())

    def model_dump_json(self) -> str:
        """Return the envelope as JSON text."""
        error = self.error.to_dict() if self.error is not None else None
        warnings: list[str] = []
        text = encode_envelope(
            error,
            self.result,
            lambda: _merge_warnings(self.meta, warnings),
            warnings,
            self._output_policy or _DEFAULT_POLICY,
        )
        return text.decode()


_DEFAULT_POLICY = RedactionPolicy()


def _merge_warnings(meta: Mapping[str, Any], warnings: list[str]) -> JsonObject:
    """Return `meta` with more warnings. They follow the fields that every call has."""
    if not warnings:
        return dict(meta)
    known = meta.get("warnings", ())
    more = [line for line in warnings if line not in known]
    merged: JsonObject = {"warnings": [*known, *more]}
    leading = [name for name in ("tool", "version", "duration_ms") if name in meta]
    return (
        {name: meta[name] for name in leading}
        | merged
        | {name: value for name, value in meta.items() if name not in (*leading, "warnings")}
    )


def to_tooli_error(
    error: ToolError,
    policy: Call | RedactionPolicy = _DEFAULT_POLICY,
    warnings: list[str] | None = None,
) -> TooliError:
    """Return a ToolError as a value for output, with the exception as its source."""
    source, error = error, present_error(error, policy, [] if warnings is None else warnings)
    return TooliError(
        code=error.code,
        category=error.category,
        message=error.message,
        suggestion=error.suggestion.to_dict() if error.suggestion else None,
        is_retryable=error.is_retryable,
        field=error.field,
        details=error.details,
        source=source,
    )
