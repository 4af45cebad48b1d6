"""Apply security settings to an app, for every interface.

For speed, this module imports `config.layers` inside functions. If there are no settings,
`apply_security_policy` returns without importing it.
"""

from __future__ import annotations

import os

from tooli.config.config_files import find_config_files, original_work_dir
from tooli.config.setting_definitions import SETTINGS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.config.layers import SettingFault, Settings, SettingValue
    from tooli.core.app_state import AppState, SecuritySettings

_TOKEN_SETTINGS = ("token_key", "tokens")
"""Settings that define which tokens are accepted. Only those of the lowest layer apply."""


def extract_security_rules(settings: Settings) -> SecuritySettings:
    """Return the security settings that are not defaults, except `security_policy`."""
    from tooli.config.layers import LAYERS

    values = settings.non_default()
    rules: SecuritySettings = {  # pyright: ignore[reportAssignmentType]
        name: value.value
        for name, value in values.items()
        if SETTINGS[name].is_security and name != "security_policy"
    }
    layers = {name: LAYERS.index(values[name].layer) for name in _TOKEN_SETTINGS if name in values}
    for name, layer in layers.items():
        if layer < max(layers.values()):
            del rules[name]  # otherwise a caller could add tokens that the system does not accept
    if "work_dir" in rules:
        rules["work_dir"] = os.path.join(original_work_dir(), os.path.expanduser(rules["work_dir"]))
    record_path = os.environ.get("TOOLI_RECORD_CAPABILITIES")
    if record_path:
        rules["record_capabilities"] = record_path
    return rules


def apply_security_policy(state: AppState) -> None:
    """Apply the strictest security settings of all layers to an app, once per app.

    Invalid settings become `faults`, which reject every call and prevent a server from starting:
    an invalid setting may have been a restriction.
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
    rules = state.security_settings = extract_security_rules(settings)
    timeout = settings.get("timeout")
    if timeout is not None:  # the command line has an option for it, other interfaces do not
        rules["timeout"] = timeout
    faults = [*filter(_affects_every_surface, settings.faults)]
    if "work_dir" in rules and not os.path.isdir(rules["work_dir"]):
        faults.append(
            make_work_dir_fault(settings.non_default()["work_dir"], "it is not a directory")
        )
    if faults:
        rules["faults"] = faults
    state.prepared_tools.clear()


def _affects_every_surface(fault: SettingFault) -> bool:
    """True if a fault concerns every interface, not only the command line."""
    return fault.key is None or fault.key == "timeout" or SETTINGS[fault.key].is_security


def make_work_dir_fault(value: SettingValue, reason: str | None) -> SettingFault:
    """Return the fault of a `work_dir` that cannot be used."""
    from tooli.config.layers import SettingFault

    return SettingFault(
        value.origin, f"work_dir {value.value!r} cannot be used: {reason}", "work_dir"
    )
