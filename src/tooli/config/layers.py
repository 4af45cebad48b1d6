"""Merge the seven layers of settings into one value per setting, with its origin."""

from __future__ import annotations

import os

from tooli.config.config_files import find_config_files, original_work_dir
from tooli.config.file_reader import ConfigSection, UnreadableConfig, read_config_file
from tooli.config.setting_definitions import (
    SECTION_NAMES,
    SETTINGS,
    VARIABLES,
    InvalidSetting,
    RawSetting,
    merge_security_values,
)
from tooli.core.record import Record
from tooli.errors import InputError, Suggestion, closest_match

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tooli.config.config_files import ConfigFile
    from tooli.config.setting_definitions import SettingDefinition
    from tooli.core.app_state import AppState, SecuritySettings
    from tooli.errors import ToolError

LAYERS = ("flag", "environment", ".env", "project", "user", "system", "default")
"""The layers, highest first."""


class SettingValue(Record):
    """The value of a setting in one layer, and its origin: a flag, a variable, or file and line."""

    value: Any
    layer: str
    origin: str


class SettingFault(Record):
    """A problem with a setting, and the origin of the setting."""

    origin: str
    message: str
    key: str | None = None

    def __str__(self) -> str:
        return f"{self.origin}: {self.message}"


def make_settings_error(faults: Sequence[SettingFault]) -> ToolError:
    """Return one error (E1011) for all problems with the settings."""
    first = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return InputError(
        f"{first}{more}",
        code="E1011",
        field=first.key,
        suggestion=Suggestion("fix", f"Correct {first.origin}, or remove the setting."),
        details={"errors": [{"where": fault.origin, "message": fault.message} for fault in faults]},
        is_retryable=False,
    )


class Settings:
    """The settings of a run: the values of all layers, and the problems that were found."""

    def __init__(self) -> None:
        self.all_values: dict[str, list[SettingValue]] = {}
        self.faults: list[SettingFault] = []
        self.files: list[ConfigFile] = []

    def get(self, name: str) -> Any:
        """Return the effective value of a setting, or None."""
        value = self.effective(name)
        return value.value if value is not None else None

    def effective(self, name: str) -> SettingValue | None:
        """Return the effective value of a setting with its origin, or None.

        It is the value of the highest layer. For a security setting, the values of all layers are
        merged.
        """
        values = self.all_values.get(name)
        if not values:
            return None
        if not SETTINGS[name].is_security:
            return values[0]
        value = merge_security_values(SETTINGS[name], [candidate.value for candidate in values])
        if SETTINGS[name].is_merged:
            return SettingValue(
                value, values[0].layer, ", ".join([candidate.origin for candidate in values])
            )
        return next(candidate for candidate in values if candidate.value == value)

    def non_default(self) -> dict[str, SettingValue]:
        """Return the effective values that are not defaults, by name."""
        effective = {
            name: value for name in self.all_values if (value := self.effective(name)) is not None
        }
        return {name: value for name, value in effective.items() if value.layer != "default"}

    def add(self, name: str, value: SettingValue) -> None:
        """Add a value. Values must be added from the highest layer to the lowest."""
        self.all_values.setdefault(name, []).append(value)


def resolve_settings(
    app: str,
    *,
    flags: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    folder: str | None = None,
    callers: Callable[[], Sequence[str]] = tuple,
    defaults: Mapping[str, SettingValue] | None = None,
) -> Settings:
    """Return the settings of a run of an app. Problems are collected in `Settings.faults`.

    Args:
        app: name of the app.
        flags: settings from the command line, by name.
        env: environment variables; by default those of the process.
        folder: folder whose project is read; by default the current folder.
        callers: returns the name and category of the caller. Called only if a file needs them.
        defaults: default values that replace those of the table.
    """
    environ = os.environ if env is None else env
    settings = Settings()
    for name, value in (flags or {}).items():
        if name in SETTINGS:
            settings.add(name, SettingValue(value, "flag", SETTINGS[name].flag or name))
    _add_environment(settings, environ)
    config_switch = environ.get("TOOLI_CONFIG", "").lower()
    if config_switch not in ("", "on", "1", "true", "yes", "off", "0", "false", "no"):
        settings.faults.append(SettingFault("TOOLI_CONFIG", "must be on or off"))
    settings.files = find_config_files(environ, folder)
    for file in settings.files:
        try:
            _add_file(settings, file, app, callers)
        except UnreadableConfig as failure:
            settings.faults.append(
                SettingFault(_format_location(file.path, failure.line), str(failure))
            )
    _check_single_project_file(settings)
    for name, definition in SETTINGS.items():
        default = (defaults or {}).get(name) or SettingValue(
            definition.default, "default", "default"
        )
        if default.value is not None:
            settings.add(name, default)
    return settings


def _format_location(path: str, line: int) -> str:
    return f"{path}:{line}" if line else path


def _check_single_project_file(settings: Settings) -> None:
    paths = [file.path for file in settings.files if file.layer == "project"]
    if len(paths) > 1 and all([_has_settings(path) for path in paths]):
        other = os.path.basename(paths[0])
        settings.faults.append(
            SettingFault(paths[1], f"{other} also has settings; keep only one of the two files")
        )


def _has_settings(path: str) -> bool:
    try:
        return bool(read_config_file(path).entries)
    except UnreadableConfig:
        return True


# ------------------------------------------------------------------ variables


def _add_environment(settings: Settings, env: Mapping[str, str]) -> None:
    for name, definition in SETTINGS.items():
        text = env.get(definition.variable)
        if text:
            _add_value(settings, definition, RawSetting(text), "environment", definition.variable)
            continue
        for variable, value in definition.shared_variables:
            if env.get(variable):
                settings.add(name, SettingValue(value, "environment", variable))
                break


def _add_value(
    settings: Settings, definition: SettingDefinition, raw: RawSetting, layer: str, origin: str
) -> None:
    try:
        settings.add(definition.name, SettingValue(definition.convert(raw), layer, origin))
    except InvalidSetting as failure:
        settings.faults.append(SettingFault(origin, str(failure), definition.name))


# ------------------------------------------------------------------ files


def _add_file(
    settings: Settings, file: ConfigFile, app: str, callers: Callable[[], Sequence[str]]
) -> None:
    content = read_config_file(file.path)
    if file.layer == ".env":
        _add_dotenv(settings, file, content)
        return
    by_setting: dict[str, list[tuple[SettingDefinition, RawSetting]]] = {}
    for section in _applicable_sections(settings, file, content, app, callers):
        for definition, raw in section:
            by_setting.setdefault(definition.name, []).append((definition, raw))
    for candidates in by_setting.values():
        for definition, raw in candidates if candidates[0][0].is_security else candidates[:1]:
            _add_value(settings, definition, raw, file.layer, _format_location(file.path, raw.line))


def _applicable_sections(
    settings: Settings,
    file: ConfigFile,
    content: ConfigSection,
    app: str,
    callers: Callable[[], Sequence[str]],
) -> list[list[tuple[SettingDefinition, RawSetting]]]:
    """Return the settings of the sections that apply to this run, most specific section first."""
    found: list[list[tuple[SettingDefinition, RawSetting]]] = []
    inner = {name: _named_sections(settings, file, content, name) for name in SECTION_NAMES}
    names = list(callers()) if inner["callers"] else []
    for name, section in inner["callers"].items():
        settings_here = _caller_settings(settings, file, section)
        if name in names:
            found.insert(0 if name == names[0] else len(found), settings_here)
    if app in inner["apps"]:
        found.append(_known_settings(settings, file, inner["apps"][app]))
    found.append(_known_settings(settings, file, content, SECTION_NAMES))
    return found


def _caller_settings(
    settings: Settings, file: ConfigFile, section: ConfigSection
) -> list[tuple[SettingDefinition, RawSetting]]:
    """Return the valid settings of a caller's section, and report the invalid ones.

    Sections of other callers are checked as well. Security settings are not allowed here, because
    callers identify themselves.
    """
    found: list[tuple[SettingDefinition, RawSetting]] = []
    for definition, raw in _known_settings(settings, file, section):
        try:
            definition.convert(raw)
        except InvalidSetting as failure:
            _add_fault(settings, file, raw.line, str(failure), definition.name)
            continue
        if definition.is_security:
            message = f"{definition.name} is a security setting, which cannot depend on the caller"
            _add_fault(settings, file, raw.line, message, definition.name)
        else:
            found.append((definition, raw))
    return found


def _named_sections(
    settings: Settings, file: ConfigFile, content: ConfigSection, name: str
) -> dict[str, ConfigSection]:
    section = content.entries.get(name)
    if section is None:
        return {}
    if isinstance(section, RawSetting):
        _add_fault(
            settings, file, section.line, f"{name} must be a section of names, each with settings"
        )
        return {}
    found: dict[str, ConfigSection] = {}
    for inner, value in section.entries.items():
        if isinstance(value, ConfigSection):
            found[inner] = value
        else:
            message = f"{name}: {inner} must be a section of settings"
            _add_fault(settings, file, value.line, message)
    return found


def _known_settings(
    settings: Settings, file: ConfigFile, section: ConfigSection, other_names: tuple[str, ...] = ()
) -> list[tuple[SettingDefinition, RawSetting]]:
    """Return the settings of a section; report unknown names and inner sections."""
    found: list[tuple[SettingDefinition, RawSetting]] = []
    for name, value in section.entries.items():
        definition = SETTINGS.get(name)
        if definition is not None and isinstance(value, RawSetting):
            found.append((definition, value))
        elif definition is not None:
            _add_fault(
                settings, file, value.line, f"{name} must be {definition.type}, not a section", name
            )
        elif name not in other_names:
            closest = closest_match(name, (*SETTINGS, *other_names))
            known = f"; the settings are {', '.join(SETTINGS)}"
            hint = f"; did you mean {closest!r}?" if closest else known
            _add_fault(settings, file, value.line, f"unknown setting {name[:60]!r}{hint}")
    return found


def _add_fault(
    settings: Settings, file: ConfigFile, line: int, message: str, key: str | None = None
) -> None:
    settings.faults.append(SettingFault(_format_location(file.path, line), message, key))


def _add_dotenv(settings: Settings, file: ConfigFile, content: ConfigSection) -> None:
    """Add the variables of a `.env` file.

    Other programs use the file as well, so an unknown name is reported only if it resembles a
    setting.
    """
    by_variable = {definition.variable: definition for definition in SETTINGS.values()}
    for name, raw in content.entries.items():
        assert isinstance(raw, RawSetting)
        definition = by_variable.get(name)
        if definition is not None and raw.text:
            _add_value(settings, definition, raw, file.layer, _format_location(file.path, raw.line))
        elif definition is None and name not in VARIABLES:
            closest = closest_match(name[6:], [definition.name for definition in SETTINGS.values()])
            if closest is not None:
                message = f"unknown variable {name}; did you mean {SETTINGS[closest].variable}?"
                _add_fault(settings, file, raw.line, message)


# ------------------------------------------------------------------ security settings

_TOKEN_SETTINGS = ("token_key", "tokens")
"""Settings that define which tokens are accepted. Only those of the lowest layer apply."""


def extract_security_rules(settings: Settings) -> SecuritySettings:
    """Return the security settings that are not defaults, except `security_policy`."""
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


def resolve_security_settings(state: AppState) -> None:
    """Set the security settings of an app: the strictest values of all layers.

    Invalid settings become `faults`, which reject every call and prevent a server from starting,
    because an invalid setting may have been a restriction.
    """
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
    """Return the fault for a `work_dir` that cannot be used."""
    return SettingFault(
        value.origin, f"work_dir {value.value!r} cannot be used: {reason}", "work_dir"
    )
