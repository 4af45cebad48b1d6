"""Running a script as a tool: read what the caller gave, and make a Script of it.

The command `orchestrate run` and `app.orchestrate(…)` are both calls of a tool, so everything that
applies to calls applies to the script as a whole: the timeout, the idempotency key, the envelope.
"""

from __future__ import annotations

from keyword import iskeyword

from tooli.core.option_words import INTERFACE_WORDS
from tooli.errors import InputError, Suggestion
from tooli.orchestrate.plan_compiler import compile_plan, read_plan
from tooli.orchestrate.script_run import (
    DEFAULT_CONCURRENCY,
    DEFAULT_LIMITS,
    DEFAULT_MAX_CALLS,
    Script,
    check_script,
    run_script,
)
from tooli.orchestrate.script_tools import (
    BARRIER,
    MODULES,
    read_script_tools,
    select_tools,
    where_stubs_are,
)
from tooli.pipeline.context import Context, call_of
from tooli.pipeline.stdout_capture import route_stdout
from tooli.schema.tool_reader import read_tool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from tooli.core.protocols import App, F
    from tooli.core.tool import Tool
    from tooli.orchestrate.script_tools import ScriptTool
    from tooli.storage.state_files import MemoryFailureHistory

MAX_CALLS, MAX_CONCURRENCY = 100_000, 256
"""The largest values of the options `max_calls` and `concurrency`."""


def make_script(
    source: str,
    available: Mapping[str, ScriptTool],
    *,
    inputs: Mapping[str, Any] | None = None,
    tools: list[str] | None = None,
    read_only: bool = False,
    max_calls: int = DEFAULT_MAX_CALLS,
    concurrency: int = DEFAULT_CONCURRENCY,
    surface: str = "cli",
) -> Script:
    """Return the Script of a source text, which may be a JSON plan.

    `available` are the tools that the caller can call; `surface` is the interface that it uses.
    Raises an InputError if an option or the plan is not valid.
    """
    stubs_at = where_stubs_are(surface)
    selected = select_tools(available, tools, read_only=read_only, stubs_at=stubs_at)
    _check_number("max_calls", max_calls, MAX_CALLS)
    _check_number("concurrency", concurrency, MAX_CONCURRENCY)
    values = {} if inputs is None else dict(inputs)
    _check_inputs(values, selected)
    plan = read_plan(source)
    source = source if plan is None else compile_plan(plan, selected, values)
    words = INTERFACE_WORDS.get(surface)
    option = "--inputs" if words is not None and words.is_command_line else "`inputs`"
    advice = f"{stubs_at} shows the functions that it can call, and {option} sets its variables."
    return Script(source, selected, values, max_calls, concurrency, DEFAULT_LIMITS, advice)


def _check_number(name: str, value: int, maximum: int) -> None:
    if not 1 <= value <= maximum:
        raise InputError(f"{name} must be a number from 1 to {maximum}.", code="E1003", field=name)


def _check_inputs(inputs: Mapping[str, object], tools: Mapping[str, ScriptTool]) -> None:
    """Raise an InputError for an input that cannot be a variable of the script."""
    for name in inputs:
        is_name = isinstance(name, str) and name.isidentifier() and not iskeyword(name)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not is_name or name in (*tools, *MODULES, BARRIER) or name[0] == "_":
            raise InputError(
                f"An input cannot have the name {str(name)[:80]!r}.",
                code="E1003",
                field="inputs",
                suggestion=Suggestion(
                    "retry_with_modified_input",
                    "Each input is a variable of the script, so its name must be a valid one that "
                    "no tool has.",
                ),
            )


def mark_script(fn: F) -> F:
    """Mark a function that runs a script. In a dry run it plans the calls of the script."""
    vars(fn).update(tooli_runs_script=True, tooli_supports_dry_run=True)
    return fn


def runs_script(tool: Tool) -> bool:
    """True if a tool runs a script, which makes more calls: it ends if its client disconnects."""
    return getattr(tool.fn, "tooli_runs_script", False)


async def run_for(
    ctx: Context,
    app: App,
    script: Script,
    failure_history: MemoryFailureHistory | None = None,
) -> Any:
    """Run a script as a part of the call that `ctx` belongs to.

    `failure_history` is that of the server, which stops callers that repeat a failing call.
    """
    call = call_of(ctx)
    if not call.caller.owns_process:
        return await run_script(app, script, call, failure_history, ctx._recorder)
    stop_routing = route_stdout()  # the text that a tool prints is its result
    try:
        return await run_script(app, script, call, failure_history, ctx._recorder)
    finally:
        stop_routing()


def make_check(read_script: Callable[..., Script]) -> Callable[..., Awaitable[None]]:
    """Return the `pre_validate` of a tool that runs scripts: it checks the types of the script.

    `read_script` has the parameters of the tool. A run checks the script itself, so the check does
    nothing unless the call is only validated.
    """

    async def check(ctx: Context, **arguments: Any) -> None:
        if call_of(ctx).options.validate:
            await check_script(read_script(ctx=ctx, **arguments))

    return check


def make_run_tool(
    app: App,
    find_tools: Callable[[Context], Mapping[str, ScriptTool]] | None = None,
    failure_history: MemoryFailureHistory | None = None,
) -> Tool:
    """Return the tool that runs a script: what `app.orchestrate(…)` calls.

    A server passes a function that returns the tools that the caller sees, and its history of
    failures.
    """

    def read_script(ctx: Context, code: str, **options: Any) -> Script:
        found = read_script_tools(app.catalog) if find_tools is None else find_tools(ctx)
        return make_script(code, found, surface=ctx.caller.surface, **options)

    @mark_script
    async def run(
        ctx: Context,
        code: str,
        inputs: dict[str, object] | None = None,
        tools: list[str] | None = None,
        read_only: bool = False,
        max_calls: int = DEFAULT_MAX_CALLS,
        concurrency: int = DEFAULT_CONCURRENCY,
    ) -> object:
        """Run a Python script that calls the tools of the app.

        The tools are async functions: `await find(text="a")`. The value of the last expression, or
        what the script returns, is the result.

        Args:
            code: The script, or a JSON plan.
            inputs: Variables of the script.
            tools: The tools that it may call. Default: all.
            read_only: It may call only tools that change nothing.
            max_calls: Maximum number of calls.
            concurrency: Maximum number of calls at the same time.
        """
        script = read_script(
            ctx,
            code,
            inputs=inputs,
            tools=tools,
            read_only=read_only,
            max_calls=max_calls,
            concurrency=concurrency,
        )
        return await run_for(ctx, app, script, failure_history)

    state = app._state
    # The access rules of the tools that the script calls apply, so the script itself needs none.
    tool = read_tool(
        run,
        app=state.name,
        path=("orchestrate", "run"),
        kwargs={"auth": (), "output_schema": {}, "pre_validate": make_check(read_script)},
        version=state.version,
    )
    return tool.replace(limits=tool.limits.replace(stops_itself=True))
