"""Settings of a command line, from configuration files and variables.

Loaded only if there may be settings.
"""

from __future__ import annotations

from tooli.config.config_files import change_work_dir
from tooli.config.layers import (
    SettingValue,
    extract_security_rules,
    make_work_dir_fault,
    resolve_settings,
)
from tooli.config.setting_definitions import SETTINGS
from tooli.core.call import CALLER_PROFILES
from tooli.detect import detect_execution_context

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tooli.cli.argv import CommandLine
    from tooli.config.layers import SettingFault, Settings
    from tooli.core.app_state import AppState


def load_settings(
    state: AppState, line: CommandLine, category: str | None, standalone: bool
) -> Sequence[SettingFault]:
    """Apply the settings to the app's policy and to the line; return the invalid settings.

    An option on the line has priority over its setting.
    """
    settings = _resolve_settings(state, line, category)
    state.resolved_settings = settings
    if state.policy != settings.get("security_policy"):
        state.policy = settings.get("security_policy")
        state.prepared_tools.clear()
    state.security_settings = extract_security_rules(settings)
    for name, setting in settings.non_default().items():
        # the flags are already on the line, and TOOLI_OUTPUT is read with the output mode
        is_new = setting.layer != "flag" and setting.origin != "TOOLI_OUTPUT"
        if is_new and not SETTINGS[name].is_security and name not in line.options:
            line.options[name] = setting.value
            line.from_config.add(name)
    faults = [fault for fault in settings.faults if fault.origin != "TOOLI_OUTPUT"]
    if standalone and "work_dir" in state.security_settings:
        try:
            change_work_dir(state.security_settings["work_dir"])
        except OSError as failure:
            setting = settings.non_default()["work_dir"]
            faults.append(make_work_dir_fault(setting, failure.strerror))
    return faults


def _resolve_settings(state: AppState, line: CommandLine, category: str | None) -> Settings:
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


def _caller_names() -> list[str]:
    """Return the names of the caller's configuration sections: its name, then its category."""
    context = detect_execution_context()
    return [name for name in (context.caller_id, str(context.category)) if name]


def _default_origin(value: str, default: str) -> str:
    return "default" if value == default else "the app's own"


def _profile_defaults(category: str) -> dict[str, SettingValue]:
    """Return the defaults for a category of callers that differ from the general ones."""
    profile, origin = CALLER_PROFILES[category], f"default for {category}"
    defaults: dict[str, SettingValue] = {}
    if profile.timeout is not None:
        defaults["timeout"] = SettingValue(profile.timeout, "default", origin)
    if profile.color != "auto":
        defaults["color"] = SettingValue(profile.color, "default", origin)
    return defaults
