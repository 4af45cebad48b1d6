"""Caller detection and settings for the command line."""

from __future__ import annotations

import os

from tooli.cli.process import write_stderr
from tooli.core._hot_tables import INFO_OPTIONS
from tooli.core.call import CALLER_PROFILES, Caller, RedactionPolicy
from tooli.detect import (
    MIN_HINT_CONFIDENCE,
    MIN_NAMED_CONFIDENCE,
    detect_execution_context,
    identify_caller,
    sanitize_value,
)
from tooli.pipeline.present import present_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tooli.cli.argv import CommandLine
    from tooli.cli.main import CommandOutput
    from tooli.config.layers import SettingFault, Settings, SettingValue
    from tooli.core.app_state import AppState
    from tooli.detect import ExecutionContext


def detect_caller(
    prog: tuple[str, ...], maybe_agent: bool, needs_checks: bool
) -> tuple[Caller, str | None]:
    """Return the caller and its category. The category is None unless `maybe_agent` is set.

    The session is `TOOLI_SESSION_ID`. The session id of an agent is not used, because it does not
    show which of our answers the agent has seen.
    """
    session = sanitize_value(os.environ.get("TOOLI_SESSION_ID"))
    if not maybe_agent:
        return Caller("cli", session=session, prog=prog), None
    context = detect_execution_context()
    name, version, category = identify_caller(context)
    checks_arguments = category == "ai_agent" and needs_checks
    caller = Caller(
        "cli", name, version, session, prog=prog, category=category, maybe_agent=checks_arguments
    )
    return caller, str(context.category)


# ------------------------------------------------------------------ settings


def load_settings(
    state: AppState, line: CommandLine, category: str | None, has_settings: bool, standalone: bool
) -> Sequence[SettingFault]:
    """Apply the settings to the line and to the policy of the app; return the invalid settings.

    A command that inspects the settings runs even if some are invalid, and reports them itself.
    """
    tool = line.tool
    inspects = tool is not None and getattr(tool.fn, "tooli_runs_with_invalid_settings", False)
    if not (has_settings or inspects or state.policy != state.declared_policy):
        return ()
    errors = _apply_settings(state, line, category, standalone)
    return () if inspects else errors


def _apply_settings(
    state: AppState, line: CommandLine, category: str | None, standalone: bool
) -> Sequence[SettingFault]:
    """Set the policy, and the options that are not on the line; return the invalid settings."""
    from tooli.config.security_settings import extract_security_rules
    from tooli.config.setting_definitions import SETTINGS

    settings = _resolve_settings(state, line, category)
    state.resolved_settings = settings
    if state.policy != settings.get("security_policy"):
        state.policy = settings.get("security_policy")
        state.prepared_tools.clear()
    rules: Any = extract_security_rules(settings)
    state.security_settings = rules
    for name, setting in settings.non_default().items():
        is_external = setting.layer != "flag" and setting.origin != "TOOLI_OUTPUT"
        if is_external and not SETTINGS[name].is_security and name not in line.options:
            line.options[name] = setting.value
            line.from_config.add(name)
    faults = [fault for fault in settings.faults if fault.origin != "TOOLI_OUTPUT"]
    if standalone and "work_dir" in state.security_settings:
        folder = state.security_settings["work_dir"]
        faults += _change_directory(folder, settings.non_default()["work_dir"])
    return faults


def _resolve_settings(state: AppState, line: CommandLine, category: str | None) -> Settings:
    from tooli.config.layers import SettingValue, resolve_settings

    flags = dict(line.options)
    if flags.pop("no_color", None):
        flags["color"] = "never"
    output, policy = state.default_output, state.declared_policy
    return resolve_settings(
        state.name,
        flags=flags,
        callers=_caller_names,
        defaults={
            "output": SettingValue(output, "default", _default_origin(output, "auto")),
            "security_policy": SettingValue(policy, "default", _default_origin(policy, "standard")),
            **({} if category is None else _profile_defaults(category)),
        },
    )


def _change_directory(folder: str, setting: SettingValue) -> list[SettingFault]:
    """Change to the folder in the setting `work_dir`; return the fault if that fails."""
    from tooli.config.config_files import change_work_dir
    from tooli.config.security_settings import make_work_dir_fault

    try:
        change_work_dir(folder)
    except OSError as failure:
        return [make_work_dir_fault(setting, failure.strerror)]
    return []


def _caller_names() -> list[str]:
    """Return the names of the caller's configuration sections: its name, then its category."""
    context = detect_execution_context()
    return [name for name in (context.caller_id, str(context.category)) if name]


def _default_origin(value: str, default: str) -> str:
    return "default" if value == default else "the app's own"


def _profile_defaults(category: str) -> dict[str, SettingValue]:
    """Return the defaults for a category of callers that differ from the general ones."""
    from tooli.config.layers import SettingValue

    profile, origin = CALLER_PROFILES[category], f"default for {category}"
    values: dict[str, Any] = {"timeout": profile.timeout, "color": profile.color}
    defaults = {"timeout": None, "color": "auto"}
    return {
        name: SettingValue(value, "default", origin)
        for name, value in values.items()
        if value != defaults[name]
    }


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
        _suggest_caller_variable(detect_execution_context())
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
                "Set TOOLI_CALLER to its name to be recognised for sure."
            )
            return


def _write_redacted(text: str) -> None:
    """Write a line to stderr without control characters from variables and folder names."""
    write_stderr(present_text(text, RedactionPolicy()))
