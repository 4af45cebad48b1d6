"""Run functions in a sandbox: in a process of their own, confined by the kernel."""

from __future__ import annotations

from tooli.config import load_security_settings
from tooli.execution.sandbox.bwrap import BubblewrapRunner, find_bubblewrap, locate_app
from tooli.execution.sandbox.sandbox_runner import (
    SandboxRunner,
    detect_sandbox_support,
    isolation_error,
)
from tooli.execution.sandbox.syscalls import SandboxUnavailable, detect_architecture
from tooli.execution.sandbox.temp_dirs import SandboxDirs
from tooli.inputs.output import find_outputs
from tooli.policy.allowed_access import (
    make_isolation_rules,
    redirected_path_error,
    with_uploads,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.core import AppState
    from tooli.core.call import Call, Runner, Stage, StageRun
    from tooli.core.tool import Tool
    from tooli.pipeline import StageContext


def isolate(context: StageContext) -> Stage | None:
    """Run the function in a sandbox.

    The kernel allows only what the command declares. If isolation is not available, the call is
    rejected under `required`, and runs with a warning under `wanted`.
    """
    state = context.state
    isolation = context.tool.guard.isolation or state.security_settings.get("isolation")
    if isolation not in ("wanted", "required"):
        return None
    required = isolation == "required"
    if context.tool.limits.stops_itself:
        return _refuse_remote if required else _warn_about_remote

    def run_isolated(call: Call) -> StageRun:
        mechanisms = detect_sandbox_support()
        missing, make_bubblewrap = list(mechanisms.missing), None
        if missing and not mechanisms.is_nested:
            make_bubblewrap = _make_bubblewrap(call.tool, state, missing)
        if missing and make_bubblewrap is None:
            if required:
                raise isolation_error(call.tool.name, missing)
            call.warnings.append(f"not isolated: {'; '.join(missing)}")
            if mechanisms.level == "none" or mechanisms.is_nested:
                return (yield call)
        if not state.security_settings_loaded:  # the settings cannot be read inside of the sandbox
            load_security_settings(state)
        rules = make_isolation_rules(call.tool, state)
        access = with_uploads(call, rules.access) or rules.access
        if access.redirected:
            raise redirected_path_error(call.tool, access)
        for output in find_outputs(call.tool.arguments_by_param(call.arguments)):
            if output.tooli_real_path is not None:
                links = (output.tooli_real_path, output.tooli_links)
                name = output.tooli_location or ""
                rules.check(call.tool.name, name, links, output.field, is_written=True)
        dirs = SandboxDirs(access)
        sandbox = SandboxRunner(
            call.runner,
            access,
            required=required,
            temp_dir=dirs.temp_dir,
            clean_up=dirs.remove,
        )
        try:
            runner = (
                sandbox if make_bubblewrap is None else make_bubblewrap(sandbox, mechanisms.seccomp)
            )
            return (yield call.replace(runner=runner))
        finally:
            # On an event loop, this runs on the loop. The removal of many files would block it.
            if not sandbox.has_begun:
                dirs.remove()

    return run_isolated


_REMOTE_REASON = "the command runs in another process or on another machine"


def _refuse_remote(call: Call) -> StageRun:
    """Refuse a command that a sandbox of this process would not confine."""
    yield from ()
    raise isolation_error(call.tool.name, [_REMOTE_REASON])


def _warn_about_remote(call: Call) -> StageRun:
    call.warnings.append(f"not isolated: {_REMOTE_REASON}")
    return (yield call)


def _make_bubblewrap(
    tool: Tool, state: AppState, missing: list[str]
) -> Callable[[SandboxRunner, bool], Runner] | None:
    """Return a function that makes a bubblewrap runner, which replaces Landlock.

    If bubblewrap cannot be used, add the reason to `missing` and return None.
    """
    try:
        detect_architecture()
        program = find_bubblewrap()
        if program is not None:
            entry = locate_app(state, tool)
            return lambda sandbox, filters: BubblewrapRunner(program, entry, sandbox, filters)
        missing.append("bubblewrap (bwrap) is not installed")
    except SandboxUnavailable as error:
        if str(error) not in missing:
            missing.append(str(error))
    return None
