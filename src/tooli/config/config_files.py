"""The files that may contain settings: those of the project, the user and the system."""

from __future__ import annotations

import os

from tooli.core import Record, is_fixed_path, may_exist

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

POSIX_CONFIG_PATH = "/etc/tooli/config.yaml"
WINDOWS_CONFIG_PATH = ("PROGRAMDATA", "C:/ProgramData", "/tooli/config.yaml")
"""Variable that names the folder, default folder, and path of the file below the folder."""
SYSTEM_CONFIG_PATH = (
    os.environ.get(*WINDOWS_CONFIG_PATH[:2]) + WINDOWS_CONFIG_PATH[2]
    if os.name == "nt"
    else POSIX_CONFIG_PATH
)
MAX_PARENT_FOLDERS = 40
"""Maximum number of folders, from the current one upwards, that are searched for the project."""

DISABLED_VALUES = ("off", "0", "false", "no")
"""Values of `TOOLI_CONFIG` that disable the files of project and user, but not of the system."""
USER_ONLY_VALUE = "user"
"""Value of `TOOLI_CONFIG` that disables the files of the project only."""


class ConfigFile(Record):
    """A file that may contain settings, and its layer."""

    layer: str  # ".env" | "project" | "user" | "system"
    path: str


def find_config_files(env: Mapping[str, str], folder: str | None = None) -> list[ConfigFile]:
    """Return the existing settings files, highest layer first."""
    found: list[ConfigFile] = []
    choice = env.get("TOOLI_CONFIG", "").lower()
    if choice not in DISABLED_VALUES:
        found += find_project_files(folder) if choice != USER_ONLY_VALUE else []
        user_path = user_config_path(env)
        if user_path is not None and os.path.exists(user_path):
            found.append(ConfigFile("user", user_path))
    if may_exist(SYSTEM_CONFIG_PATH):  # if it cannot be read, that is an error
        found.append(ConfigFile("system", SYSTEM_CONFIG_PATH))
    return found


_work_dir_change = ("", "")


def change_work_dir(folder: str) -> None:
    """Change the working directory to the folder of the setting `work_dir`.

    The project is still searched for from the old directory.
    """
    global _work_dir_change  # a process has one current folder
    before = original_work_dir()
    os.chdir(folder)
    _work_dir_change = (before, os.getcwd())


def original_work_dir() -> str:
    """Return the working directory before `change_work_dir`; "" if it was deleted."""
    try:
        current = os.getcwd()
    except OSError:
        return ""
    return _work_dir_change[0] if current == _work_dir_change[1] else current


def find_project_files(folder: str | None = None) -> list[ConfigFile]:
    """Return the settings files of the project that contains a folder, by default the current one.

    The project folder is the nearest folder with a `.tooli.yaml`, a pyproject.toml with a table
    `tool.tooli`, or a `.git`. If there is none, it is the folder itself.
    """
    start = root = folder or original_work_dir()
    if not start:
        return []
    for _ in range(MAX_PARENT_FOLDERS):
        yaml_path = os.path.join(root, ".tooli.yaml")
        toml_path = os.path.join(root, "pyproject.toml")
        config_paths = [yaml_path] if os.path.exists(yaml_path) else []
        if os.path.exists(toml_path) and mentions_tooli(toml_path):
            config_paths.append(toml_path)
        if config_paths or os.path.exists(os.path.join(root, ".git")):
            return [*_find_dotenv(root), *(ConfigFile("project", path) for path in config_paths)]
        parent = os.path.dirname(root)
        if parent == root:
            break
        root = parent
    return _find_dotenv(start)


def _find_dotenv(root: str) -> list[ConfigFile]:
    path = os.path.join(root, ".env")
    is_file = os.path.exists(path) and not os.path.isdir(path)  # a folder is a virtual environment
    return [ConfigFile(".env", path)] if is_file else []


def user_config_path(env: Mapping[str, str]) -> str | None:
    """Return the path of the user's settings file; None if the home folder is unknown.

    A variable that `ignored_home_variables` returns is not used.
    """
    for variable, below in _CONFIG_HOMES:
        home = env.get(variable)
        if home and is_fixed_path(home):
            return os.path.join(home, *below, "tooli", "config.yaml")
    return None


_CONFIG_HOMES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (("APPDATA", ()),) if os.name == "nt" else (("XDG_CONFIG_HOME", ()), ("HOME", (".config",)))
)
"""Variables that name the folder of the user's settings, and the path below each."""


def ignored_home_variables(env: Mapping[str, str]) -> list[str]:
    """Return the variables whose folder depends on the current folder, as `/proc/self/cwd` does.

    Otherwise a file of a project could be read as the user's own file.
    """
    found: list[str] = []
    for variable, _ in _CONFIG_HOMES:
        path = env.get(variable)
        if path and is_fixed_path(path):
            break
        if path:
            found.append(variable)
    return found


MAX_SEARCHED_BYTES = 1 << 22
"""Number of bytes of a pyproject.toml that are searched for its table."""


ESCAPED_LETTERS = (b"\\u006", b"\\u007", b"\\U0000006", b"\\U0000007")
"""The beginnings of escaped letters in TOML, with which a key can be written as well."""


def mentions_tooli(path: str) -> bool:
    """True if a pyproject.toml may have a table `tool.tooli`. The file is not parsed."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            kind = os.fstat(file).st_mode & 0o170000
            if kind != 0o100000:  # a pipe or a device is reported, when the settings are read
                return kind != 0o040000
            text = os.read(file, MAX_SEARCHED_BYTES).translate(None, b" \t\r\"'")
        finally:
            os.close(file)
    except OSError:
        return True  # the error is reported when the settings are read
    patterns = (
        *ESCAPED_LETTERS,
        b"tool.tooli]",
        b"tool.tooli.",
        b"tool.tooli=",
        b"\n[tool]",
        b"\ntool={",
    )
    return any([pattern in b"\n" + text for pattern in patterns])
