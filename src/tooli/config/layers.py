"""Merge the seven layers of settings into one value per setting, with its origin."""

from __future__ import annotations

import os

from tooli.config.config_files import find_config_files
from tooli.config.file_reader import ConfigSection, UnreadableConfig, read_config_file
from tooli.config.setting_definitions import (
    OTHER_VARIABLES,
    SECTION_NAMES,
    SETTINGS,
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
    from tooli.errors import ToolError

LAYERS = ("flag", "environment", ".env", "project", "user", "system", "default")
"""The layers, highest first."""


class SettingValue(Record):
    """The value of a setting in one layer, and its origin: a flag, a variable, a file with line."""

    value: Any
    layer: str
    origin: str


class SettingFault(Record):
    """A problem with a setting and its origin."""

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
    """The settings of a run: the values of every layer, and the problems with them."""

    def __init__(self) -> None:
        self.all_values: dict[str, list[SettingValue]] = {}
        self.faults: list[SettingFault] = []
        self.files: list[ConfigFile] = []

    def get(self, name: str) -> Any:
        """Return the effective value of a setting, or None."""
        value = self.effective(name)
        return value.value if value is not None else None

    def effective(self, name: str) -> SettingValue | None:
        """Return the effective value: that of the highest layer.

        For a security setting, the values of all layers are merged.
        """
        values = self.all_values.get(name)
        if not values:
            return None
        if not SETTINGS[name].is_security:
            return values[0]
        value = merge_security_values(SETTINGS[name], [candidate.value for candidate in values])
        if SETTINGS[name].merge_rule in ("union", "each"):
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
        defaults: default values that differ from those of the table.
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
    for name, key in SETTINGS.items():
        default = (defaults or {}).get(name) or SettingValue(key.default, "default", "default")
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
            SettingFault(paths[1], f"{other} has settings as well; keep one of the two files")
        )


def _has_settings(path: str) -> bool:
    try:
        return bool(read_config_file(path).entries)
    except UnreadableConfig:
        return True


# ------------------------------------------------------------------ variables


def _add_environment(settings: Settings, env: Mapping[str, str]) -> None:
    for name, key in SETTINGS.items():
        text = env.get(key.variable)
        if text:
            _add_value(settings, key, RawSetting(text), "environment", key.variable)
            continue
        for variable, value in key.shared_variables:
            if env.get(variable):
                settings.add(name, SettingValue(value, "environment", variable))
                break


def _add_value(
    settings: Settings, key: SettingDefinition, scalar: RawSetting, layer: str, origin: str
) -> None:
    try:
        settings.add(key.name, SettingValue(key.convert(scalar), layer, origin))
    except InvalidSetting as failure:
        settings.faults.append(SettingFault(origin, str(failure), key.name))


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
        for key, scalar in section:
            by_setting.setdefault(key.name, []).append((key, scalar))
    for candidates in by_setting.values():
        for key, scalar in candidates if candidates[0][0].is_security else candidates[:1]:
            _add_value(settings, key, scalar, file.layer, _format_location(file.path, scalar.line))


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
    """Return the settings of a `callers` section. They are checked for every caller.

    Security settings are not allowed there, because callers identify themselves.
    """
    found: list[tuple[SettingDefinition, RawSetting]] = []
    for key, scalar in _known_settings(settings, file, section):
        try:
            key.convert(scalar)
        except InvalidSetting as failure:
            _add_fault(settings, file, scalar.line, str(failure), key.name)
            continue
        if key.is_security:
            message = f"{key.name} is a security setting, which cannot depend on the caller"
            _add_fault(settings, file, scalar.line, message, key.name)
        else:
            found.append((key, scalar))
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
        key = SETTINGS.get(name)
        if key is not None and isinstance(value, RawSetting):
            found.append((key, value))
        elif key is not None:
            _add_fault(
                settings, file, value.line, f"{name} must be {key.type}, not a section", name
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
    by_variable = {key.variable: key for key in SETTINGS.values()}
    for name, scalar in content.entries.items():
        assert isinstance(scalar, RawSetting)
        key = by_variable.get(name)
        if key is not None and scalar.text:
            _add_value(settings, key, scalar, file.layer, _format_location(file.path, scalar.line))
        elif key is None and name not in OTHER_VARIABLES:
            closest = closest_match(name[6:], [definition.name for definition in SETTINGS.values()])
            if closest is not None:
                message = f"unknown variable {name}; did you mean {SETTINGS[closest].variable}?"
                _add_fault(settings, file, scalar.line, message)
