"""A run among its surroundings: who seems to be calling, and what is set outside the line."""

from __future__ import annotations

import os

from tooli.core.caller_profile import CALLER_PROFILES

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.cli.main import Invocation
    from tooli.config.layers import SettingValue
    from tooli.core.caller_profile import CallerProfile
    from tooli.detect import ExecutionContext


def detect_caller_profile() -> CallerProfile:
    """What whoever seems to be calling gets."""
    from tooli.detect import detect_execution_context

    return CALLER_PROFILES[detect_execution_context().category]


def load_settings(invocation: Invocation, app_state: Any, has_settings: bool) -> None:
    """Take what is set into account; a command that shows it shows what is wrong, too.

    `own` is the house of the app that was started: a built-in command has one of its own.
    """
    tool = invocation.line.tool
    inspects = tool is not None and getattr(tool.fn, "tooli_runs_with_invalid_settings", False)
    if has_settings or inspects or app_state.policy != app_state.declared_policy:
        apply_settings(invocation, app_state)
        if inspects:
            invocation.setting_errors = ()


# ------------------------------------------------------------------ settings


def apply_settings(invocation: Invocation, app_state: Any) -> None:
    """Give the line what is set elsewhere, where it says nothing itself; tighten the policy."""
    from tooli.config.layers import SettingValue, resolve_settings
    from tooli.config.security_settings import extract_security_rules
    from tooli.config.setting_definitions import SETTINGS

    line = invocation.line
    flags = dict(line.options)
    if flags.pop("no_color", None):
        flags["color"] = "never"
    settings = resolve_settings(
        app_state.name,
        flags=flags,
        callers=_caller_names,
        defaults={
            "output": SettingValue(
                app_state.default_output,
                "default",
                _default_origin(app_state.default_output, "auto"),
            ),
            "security_policy": SettingValue(
                app_state.declared_policy,
                "default",
                _default_origin(app_state.declared_policy, "standard"),
            ),
            **(_profile_defaults() if invocation.maybe_agent else {}),
        },
    )
    app_state.resolved_settings = settings
    if app_state.policy != settings.get("security_policy"):
        app_state.policy = settings.get("security_policy")
        app_state.prepared_tools.clear()
    app_state.security_settings = extract_security_rules(settings)
    for name, setting in settings.non_default().items():
        is_external = setting.layer != "flag" and setting.origin != "TOOLI_OUTPUT"
        if is_external and not SETTINGS[name].is_security and name not in line.options:
            line.options[name] = setting.value
            line.from_config.add(name)
    invocation.setting_errors = [
        fault for fault in settings.faults if fault.origin != "TOOLI_OUTPUT"
    ]
    if invocation.standalone and "work_dir" in app_state.security_settings:
        _change_directory(
            invocation, app_state.security_settings["work_dir"], settings.non_default()["work_dir"]
        )


def _change_directory(invocation: Invocation, folder: str, setting: SettingValue) -> None:
    """Run in the folder that is set: the process is this command's alone, or a server's."""
    from tooli.config.config_files import change_work_dir
    from tooli.config.security_settings import make_work_dir_fault

    try:
        change_work_dir(folder)
    except OSError as failure:
        invocation.setting_errors = [
            *invocation.setting_errors,
            make_work_dir_fault(setting, failure.strerror),
        ]


def _caller_names() -> list[str]:
    """What sections for callers go by: the caller's name, then its kind."""
    from tooli.detect import detect_execution_context

    context = detect_execution_context()
    return [name for name in (context.caller_id, str(context.category)) if name]


def _default_origin(value: str, default: str) -> str:
    return "default" if value == default else "the app's own"


def _profile_defaults() -> dict[str, Any]:
    """What the table gives the caller beside the app's own defaults."""
    from tooli.config.layers import SettingValue
    from tooli.detect import detect_execution_context

    category = detect_execution_context().category
    profile, origin = CALLER_PROFILES[category], f"default for {category}"
    values = {"timeout": profile.timeout, "color": profile.color}
    defaults = {"timeout": None, "color": "auto"}
    return {
        name: SettingValue(value, "default", origin)
        for name, value in values.items()
        if value != defaults[name]
    }


# ------------------------------------------------------------------ suiting the caller


def apply_output_settings(invocation: Invocation) -> int | None:
    """Before anything runs: choose colours, give a hint, refuse settings that are wrong.

    The exit code, where they are.
    """
    options = invocation.line.options
    if invocation.setting_errors:
        from tooli.core._hot_tables import INFO_OPTIONS

        if INFO_OPTIONS.isdisjoint(options):
            from tooli.cli.info_options import write_error
            from tooli.config.layers import make_settings_error

            invocation.line.problems.clear()
            return write_error(invocation, make_settings_error(invocation.setting_errors))
        for error in invocation.setting_errors:
            _write_redacted(f"Warning: {error}")
    color = options.get(
        "color",
        invocation.caller_profile.color if invocation.caller_profile is not None else "auto",
    )
    if invocation.standalone and options.get("no_color"):
        os.environ["NO_COLOR"] = "1"
    elif invocation.standalone:
        if color == "never" and ("color" in options or not os.environ.get("FORCE_COLOR")):
            os.environ["NO_COLOR"] = "1"
        elif color == "always":
            os.environ.pop("NO_COLOR", None)
            os.environ["FORCE_COLOR"] = "1"
    if options.get("verbose") and not options.get("quiet"):
        from tooli.detect import detect_execution_context

        _suggest_caller_variable(detect_execution_context())
    return None


def _suggest_caller_variable(context: ExecutionContext) -> None:
    """A word to an agent that can only be guessed at."""
    from tooli.detect import MIN_HINT_CONFIDENCE, MIN_NAMED_CONFIDENCE

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
    """A line on stderr; a folder's name or a variable in it is nothing for a terminal to obey."""
    from tooli.cli.process import write_stderr
    from tooli.core.call import RedactionPolicy
    from tooli.pipeline.present import present_text

    write_stderr(present_text(text, RedactionPolicy()))
