"""The security settings that configuration asks for, on doors that have no command line."""

from __future__ import annotations

import os

from tooli.config.config_files import find_config_files, original_work_dir
from tooli.config.setting_definitions import SETTINGS

_TOKEN_SETTINGS = ("token_key", "tokens")
"""Settings that say together who is believed: what the lower layer says of any, it says of all."""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.config.layers import SettingFault, Settings, SettingValue


def extract_security_rules(settings: Settings) -> dict[str, Any]:
    """The security settings that somebody made, beside the policy; and where to record."""
    from tooli.config.layers import LAYERS

    values = settings.non_default()
    rules = {
        name: value.value
        for name, value in values.items()
        if SETTINGS[name].is_security and name != "security_policy"
    }
    layers = {name: LAYERS.index(values[name].layer) for name in _TOKEN_SETTINGS if name in values}
    for name, layer in layers.items():
        if layer < max(layers.values()):
            del rules[name]  # or a caller would add a way in that the machine's owner did not mean
    if "work_dir" in rules:
        rules["work_dir"] = os.path.join(original_work_dir(), os.path.expanduser(rules["work_dir"]))
    record = os.environ.get("TOOLI_RECORD_CAPABILITIES")
    return {**rules, "record_capabilities": record} if record else rules


def apply_security_policy(state: Any) -> None:
    """Hold an app to the strictest policy that anybody asks for; looked up once for each app.

    What is wrong with a setting becomes a rule, too: its `faults` refuse every call, and a
    server does not begin to serve. Nobody knows what was meant to be guarded.
    """
    if state.policy_resolved:
        return
    state.policy_resolved = True
    if not any([name[:6] == "TOOLI_" for name in os.environ]) and not find_config_files(os.environ):
        return
    from tooli.config.layers import SettingValue, resolve_settings

    declared = SettingValue(state.declared_policy, "default", "the app's own")
    settings = resolve_settings(state.name, defaults={"security_policy": declared})
    state.policy = settings.get("security_policy")
    state.security_settings = extract_security_rules(settings)
    if settings.get("timeout") is not None:
        state.security_settings["timeout"] = settings.get(
            "timeout"
        )  # what a line's own options say elsewhere
    faults = [*filter(_affects_every_surface, settings.faults)]
    if "work_dir" in state.security_settings and not os.path.isdir(
        state.security_settings["work_dir"]
    ):
        faults.append(make_work_dir_fault(settings.non_default()["work_dir"], "it is no folder"))
    if faults:
        state.security_settings["faults"] = faults
    state.prepared_tools.clear()


def _affects_every_surface(fault: SettingFault) -> bool:
    """Whether a fault is one for every door, and not about what only a command line does."""
    return fault.key is None or fault.key == "timeout" or SETTINGS[fault.key].is_security


def make_work_dir_fault(value: SettingValue, reason: str | None) -> SettingFault:
    """The fault of a work_dir that nobody can work in."""
    from tooli.config.layers import SettingFault

    return SettingFault(
        value.origin, f"work_dir {value.value!r} cannot be used: {reason}", "work_dir"
    )
