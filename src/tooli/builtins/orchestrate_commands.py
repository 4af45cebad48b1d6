"""orchestrate run, check and stubs: scripts that call the commands of the app."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from tooli.builtins import lists_everything, returns_text, stops_itself
from tooli.inputs.constraints import InputLimits
from tooli.inputs.source import Input, StdinOr
from tooli.orchestrate.run_tool import (
    DEFAULT_CONCURRENCY,
    DEFAULT_MAX_CALLS,
    MAX_CALLS,
    MAX_CONCURRENCY,
    make_check,
    make_script,
    mark_script,
    run_for,
)
from tooli.orchestrate.script_check import MAX_SOURCE_CHARS
from tooli.orchestrate.script_run import check_script
from tooli.orchestrate.script_tools import read_script_tools, select_tools
from tooli.orchestrate.stubs import render_stubs
from tooli.pipeline.context import Context  # noqa: TC001  evaluated at registration
from tooli.schema.param_info import Argument, Option

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import App
    from tooli.orchestrate.script_run import Script

_File = Annotated[
    StdinOr[str],
    Argument(help="The script, or a JSON plan; `-` reads stdin."),
    InputLimits(max_bytes=4 * MAX_SOURCE_CHARS),  # a character has at most four bytes
]
_Inputs = Annotated[
    dict[str, Any] | None,
    Option("--inputs", help="Variables of the script, as a JSON object or @FILE."),
]
_Tools = Annotated[
    str | None, Option("--tools", help="Only these commands, separated by commas.", metavar="LIST")
]
_ReadOnly = Annotated[bool, Option("--read-only", help="Only commands that change nothing.")]


def add_orchestrate(group: App, app: App) -> None:
    """Add `orchestrate run`, `orchestrate check` and `orchestrate stubs`."""

    read_script = partial(_read_script, app)

    @group.command("run", auth=[], output_schema={}, pre_validate=make_check(read_script))
    @lists_everything
    @stops_itself
    @mark_script
    async def run(
        file: _File,
        ctx: Context,
        inputs: _Inputs = None,
        tools: _Tools = None,
        read_only: _ReadOnly = False,
        max_calls: Annotated[
            int, Option(min=1, max=MAX_CALLS, help="Maximum number of calls.")
        ] = DEFAULT_MAX_CALLS,
        concurrency: Annotated[
            int, Option(min=1, max=MAX_CONCURRENCY, help="Maximum number of calls at a time.")
        ] = DEFAULT_CONCURRENCY,
    ) -> object:
        """Run a Python script that calls the commands of the app as functions.

        The script runs in a sandbox without files, network and environment. Its last expression,
        or what it returns, is the result. --yes confirms destructive commands. --dry-run runs the
        commands that only read and plans all others; --apply runs exactly that plan.
        """
        script = read_script(
            file,
            inputs=inputs,
            tools=tools,
            read_only=read_only,
            max_calls=max_calls,
            concurrency=concurrency,
        )
        return await run_for(ctx, app, script)

    @group.command("check")
    async def check(
        file: _File, inputs: _Inputs = None, tools: _Tools = None, read_only: _ReadOnly = False
    ) -> dict[str, object]:
        """Check a script without running it: syntax, names and types, all errors at once."""
        script = read_script(
            file,
            inputs=inputs,
            tools=tools,
            read_only=read_only,
        )
        await check_script(script)
        return {"valid": True, "functions": list(script.tools)}

    @group.command("stubs")
    @returns_text
    def stubs(tools: _Tools = None, read_only: _ReadOnly = False) -> str:
        """Print the functions that a script can call, as typed Python stubs."""
        found = read_script_tools(app.catalog)
        return render_stubs(select_tools(found, _split(tools), read_only=read_only).values())


def _read_script(
    app: App,
    file: StdinOr[str],
    ctx: Context | None = None,
    tools: str | None = None,
    **options: Any,
) -> Script:
    """Return the script of a command, or of the check before it: that gets the input itself."""
    del ctx  # every caller of the command sees all commands
    code = file.read_text() if isinstance(file, Input) else file
    return make_script(code, read_script_tools(app.catalog), tools=_split(tools), **options)


def _split(names: str | None) -> list[str] | None:
    """Return the names in a comma-separated list."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]
