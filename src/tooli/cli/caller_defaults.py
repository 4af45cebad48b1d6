"""Detect the caller of a command line, and apply its defaults: colour, messages, size limits."""

from __future__ import annotations

import os

from tooli.cli.process import write_stderr
from tooli.core._hot_tables import INFO_OPTIONS, RESULT_OPTIONS
from tooli.core.call import Caller, RedactionPolicy
from tooli.core.output_limits import find_output_limit
from tooli.detect import (
    MIN_HINT_CONFIDENCE,
    MIN_NAMED_CONFIDENCE,
    detect_from_environment,
    identify_caller,
    sanitize_value,
)
from tooli.pipeline.present import present_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.cli import CommandOutput, Invocation
    from tooli.core.tool import Tool
    from tooli.detect import ExecutionContext
    from tooli.records.call_options import ResultOptions


def detect_caller(
    prog: tuple[str, ...], maybe_agent: bool, needs_checks: bool
) -> tuple[Caller, str | None]:
    """Return the caller and its category. The category is None unless `maybe_agent` is set.

    The session is `TOOLI_SESSION_ID`. The session id that an agent sets is not used, because the
    agent may not have seen all answers to earlier calls with the same id.
    """
    session = sanitize_value(os.environ.get("TOOLI_SESSION_ID"))
    if not maybe_agent:
        return Caller("cli", session=session, prog=prog), None
    context = detect_from_environment()
    name, version, category = identify_caller(context)
    checks_arguments = category == "ai_agent" and needs_checks
    caller = Caller(
        "cli", name, version, session, prog=prog, category=category, maybe_agent=checks_arguments
    )
    return caller, str(context.category)


# ------------------------------------------------------------------ before the command runs


def apply_output_settings(output: CommandOutput) -> int | None:
    """Apply the settings for colour and messages; return the exit code if settings are invalid."""
    invocation = output.invocation
    options = invocation.line.options
    if invocation.setting_errors:
        if INFO_OPTIONS.isdisjoint(options):
            from tooli.cli.usage_errors import write_error
            from tooli.config.layers import make_settings_error

            return write_error(output, make_settings_error(invocation.setting_errors))
        for error in invocation.setting_errors:
            _write_redacted(f"Warning: {error}")
    if invocation.standalone:
        profile = invocation.caller_profile
        default = profile.color if profile is not None else "auto"
        _set_color_variables(options, options.get("color", default))
    if options.get("verbose") and not options.get("quiet"):
        _suggest_caller_variable(detect_from_environment())
    return None


def _set_color_variables(options: dict[str, Any], color: str) -> None:
    is_forced_by_user = "color" not in options and bool(os.environ.get("FORCE_COLOR"))
    if options.get("no_color") or (color == "never" and not is_forced_by_user):
        os.environ["NO_COLOR"] = "1"
    elif color == "always":
        os.environ.pop("NO_COLOR", None)
        os.environ["FORCE_COLOR"] = "1"


def _suggest_caller_variable(context: ExecutionContext) -> None:
    """Write a hint about TOOLI_CALLER to stderr if the caller may be an agent."""
    for candidate in context.candidates:
        if (
            candidate.category == "ai_agent"
            and MIN_HINT_CONFIDENCE <= candidate.confidence < MIN_NAMED_CONFIDENCE
        ):
            signals = ", ".join(candidate.signals)
            _write_redacted(
                f"tooli: this may be an agent (confidence {candidate.confidence:.2f}: {signals}). "
                "Set TOOLI_CALLER to its name, so that it is recognised."
            )
            return


def _write_redacted(text: str) -> None:
    """Write a line to stderr without control characters, which a folder name may contain."""
    write_stderr(present_text(text, RedactionPolicy()))


# ------------------------------------------------------------------ size limits


def compute_result_options(invocation: Invocation, tool: Tool | None) -> ResultOptions | None:
    """Return the result options of a call.

    The line has priority over the settings, and the settings over the limits of the caller.
    """
    from tooli.records.call_options import read_result_options

    line = invocation.line
    on_line = {
        name: line.options[name] for name in RESULT_OPTIONS & line.options.keys() - line.from_config
    }
    if "python_eval" in line.options and tool is not None and line.needs_result_options(tool):
        # an expression about a part of the result would mislead, unless the line asks for a part
        on_line = {"limit": 0, "max_tokens": 0, **on_line}
        return read_result_options(on_line, tuple(invocation.argv))
    result_options = read_result_options(on_line, tuple(invocation.argv))
    is_complete = tool is not None and (
        hasattr(tool.fn, "tooli_mode") or hasattr(tool.fn, "tooli_lists_everything")
    )
    if tool is None or is_complete:
        return result_options if line.needs_result_options(tool) else None
    configured = {name: line.options[name] for name in RESULT_OPTIONS & line.from_config}
    limits = _default_limits(read_result_options(configured), invocation.maybe_agent)
    if result_options.max_items is not None:
        limits["max_items"] = result_options.max_items
    if result_options.has_explicit_size_limit:  # a limit on the line replaces every other one
        limits = {"max_items": limits.get("max_items")}
    elif any(limits.values()):
        limits["has_default_sizes"] = True
    if not line.needs_result_options(tool) and not any(limits.values()):
        return None
    return result_options.replace(**limits)


def _default_limits(configured: ResultOptions, maybe_agent: bool) -> dict[str, Any]:
    """Return the limits from the settings, and that of the caller if no size limit is set."""
    limits: dict[str, Any] = {}
    if maybe_agent and configured.max_bytes is None and configured.max_tokens is None:
        limits["caller_limit"] = find_output_limit(detect_from_environment().caller_id)
    for name in ("max_items", "max_bytes", "max_tokens"):
        if getattr(configured, name) is not None:
            limits[name] = getattr(configured, name)
    return limits
