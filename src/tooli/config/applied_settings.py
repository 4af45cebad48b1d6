"""Apply the settings to an app: its security policy, its security rules, its command line."""

from __future__ import annotations

import os

from tooli.config.config_files import change_work_dir, original_work_dir
from tooli.config.file_trust import PROJECT_LAYERS
from tooli.config.layers import (
    LAYERS,
    SettingFault,
    SettingValue,
    make_exception_fault,
    resolve_settings,
)
from tooli.config.setting_definitions import SETTINGS
from tooli.config.token_settings import TOKEN_SETTINGS, is_url
from tooli.core.call import CALLER_PROFILES

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.config.layers import Settings
    from tooli.core import AppState, SecuritySettings


def extract_security_rules(settings: Settings) -> SecuritySettings:
    """Return the security settings that are not defaults, except `security_policy`."""
    values = settings.non_default()
    rules: SecuritySettings = {  # pyright: ignore[reportAssignmentType]
        name: value.value
        for name, value in values.items()
        if SETTINGS[name].is_security and name not in ("security_policy", "trusted_dirs")
    }
    _remove_added_tokens(rules, values)
    if "work_dir" in rules:
        rules["work_dir"] = os.path.join(original_work_dir(), os.path.expanduser(rules["work_dir"]))
    record_path = os.environ.get("TOOLI_RECORD_CAPABILITIES")
    if record_path:
        rules["record_capabilities"] = record_path
    if settings.of_other_apps:
        rules["apps"] = settings.of_other_apps
    if settings.ignored:
        rules["ignored"] = settings.ignored
    faults = [
        fault
        for fault in settings.faults  # faults of other settings affect only the command line
        if fault.key in (None, "timeout") or SETTINGS[fault.key].is_security
    ]
    if "work_dir" in rules and not os.path.isdir(rules["work_dir"]):
        faults.append(_make_work_dir_fault(settings, "it is not a directory"))
    if faults:
        rules["faults"] = faults
    return rules


def _remove_added_tokens(rules: SecuritySettings, values: Mapping[str, SettingValue]) -> None:
    """Remove the settings that accept more tokens than a lower layer does.

    Otherwise a caller could add tokens that the system does not accept. An issuer that is a URL
    defines which tokens are accepted, but in a higher layer it only restricts them.
    """
    layers = {name: LAYERS.index(values[name].layer) for name in TOKEN_SETTINGS if name in values}
    lowest = max(layers.values(), default=0)
    if is_url(rules.get("token_issuer")):
        lowest = max(lowest, LAYERS.index(values["token_issuer"].layer))
    for name, layer in layers.items():
        if layer < lowest:
            del rules[name]


def resolve_security_settings(state: AppState) -> None:
    """Set the security settings of an app: the strictest values of all layers.

    Invalid settings become `faults`, which reject every call and prevent a server from starting,
    because an invalid setting may have been a restriction.
    """
    declared = SettingValue(state.declared_policy, "default", "the app's own")
    try:
        settings = resolve_settings(state.name, defaults={"security_policy": declared})
        policy, rules = settings.get("security_policy"), extract_security_rules(settings)
        timeout = settings.get("timeout")
    except Exception as error:
        policy, timeout = "strict", None
        rules: SecuritySettings = {"faults": [_describe(error)]}
    if timeout is not None:  # the command line has an option for it, other interfaces do not
        rules["timeout"] = timeout
    _publish(state, policy, rules)


def _describe(error: Exception) -> SettingFault:
    return make_exception_fault("configuration", error)


def _publish(state: AppState, policy: str, rules: SecuritySettings) -> None:
    """Replace the security settings of an app. Nothing is replaced until all are known."""
    state.security_settings = rules
    state.policy = policy
    state.prepared_tools.clear()


def _make_work_dir_fault(settings: Settings, reason: str | None) -> SettingFault:
    value = settings.non_default()["work_dir"]
    message = f"work_dir {value.value!r} cannot be used: {reason}"
    return SettingFault(value.origin, message, "work_dir")


# ------------------------------------------------------------------ settings of a command line


def load_cli_settings(
    state: AppState,
    options: dict[str, Any],
    from_config: set[str],
    category: str | None,
    standalone: bool,
) -> Sequence[SettingFault]:
    """Apply the settings to an app and to the options of its command line.

    An option on the line has priority over its setting. The names of options that get their value
    from a setting are added to `from_config`. Return the invalid settings.
    """
    try:
        settings = _resolve_cli_settings(state, options, category)
        rules = extract_security_rules(settings)
    except Exception as error:
        fault = _describe(error)
        _publish(state, "strict", {"faults": [fault]})
        return [fault]
    state.resolved_settings = settings
    if "timeout" in state.security_settings:  # calls from Python in the same process need it
        rules["timeout"] = state.security_settings["timeout"]
    if (state.policy, state.security_settings) != (settings.get("security_policy"), rules):
        _publish(state, settings.get("security_policy"), rules)
    for name, setting in settings.non_default().items():
        # `_read_requested_mode` in `tooli.cli` reads TOOLI_OUTPUT and reports an invalid value.
        is_read_later = name == "output" and bool(os.environ.get("TOOLI_OUTPUT"))
        # `--no-color` sets `color` in the layer `flag`, although `options` has no `color`.
        is_new = setting.layer != "flag" and name not in options
        if name == "quiet" and settings.ignored and setting.layer in PROJECT_LAYERS:
            continue  # a project must not hide that its settings are ignored
        if is_new and not is_read_later and not SETTINGS[name].is_security:
            options[name] = setting.value
            from_config.add(name)
    faults = [fault for fault in settings.faults if fault.origin != "TOOLI_OUTPUT"]
    if standalone and "work_dir" in rules:
        try:
            change_work_dir(rules["work_dir"])
        except OSError as failure:
            faults.append(_make_work_dir_fault(settings, failure.strerror))
    return faults


def _resolve_cli_settings(
    state: AppState, options: Mapping[str, Any], category: str | None
) -> Settings:
    flags = dict(options)
    if flags.pop("no_color", None):
        flags["color"] = "never"
    app_defaults = {
        "output": state.default_output,
        "security_policy": state.declared_policy,
    }
    defaults = {
        name: SettingValue(
            value, "default", "default" if value == SETTINGS[name].default else "the app's own"
        )
        for name, value in app_defaults.items()
    }
    if category is not None:
        profile = CALLER_PROFILES[category]
        for name, value in (("timeout", profile.timeout), ("color", profile.color)):
            if value not in (None, "auto"):
                defaults[name] = SettingValue(value, "default", f"default for {category}")
    return resolve_settings(state.name, flags=flags, callers=_caller_names, defaults=defaults)


def _caller_names() -> list[str]:
    """Return the names of the caller's configuration sections: its name, then its category."""
    from tooli.detect import detect_from_environment  # only a file with `callers` needs it

    context = detect_from_environment()
    return [name for name in (context.caller_id, str(context.category)) if name]
