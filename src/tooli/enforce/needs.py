"""What Python itself needs while a command runs, and where a path really leads.

Importing reads modules and writes bytecode; time zones, languages, certificates and the like are
public files. None of it is the command's doing, and no declaration has to name it.
"""

from __future__ import annotations

import os
import sys

from tooli.enforce.events import At

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType
    from typing import Any

DEVICES = frozenset(
    (
        *("/dev/null", "/dev/full", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/tty"),
        *("/dev/stdin", "/dev/stdout", "/dev/stderr", "nul", "NUL", "CON", "CONIN$", "CONOUT$"),
    )
)
"""No files: they hold nothing of anybody's."""

PUBLIC = (
    *("/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"),
    *("/var/db/timezone", "/etc/localtime", "/usr/share/locale", "/usr/lib/locale"),
    *("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ssl/cert.pem", "/usr/lib/ssl/certs"),
    *("/usr/share/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted"),
    *("/etc/mime.types", "/usr/share/mime", "/etc/httpd/mime.types", "/etc/apache2/mime.types"),
    *("/etc/timezone", "/usr/share/i18n", "/etc/locale.alias", "/etc/ca-certificates"),
    *("/usr/local/share/ca-certificates", "/etc/crypto-policies", "/etc/os-release"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/sys/vm/overcommit_memory"),
    "/sys/devices/system/cpu",
)
"""Facts about the machine that libraries read by themselves, and that are nobody's secret."""

CODE = (".py", ".pyc", ".pyi", ".so", ".pyd", ".pth", ".egg-link")
_IMPORTING = ("<frozen importlib", "<frozen zipimport")
_HERE = os.path.dirname(os.path.abspath(__file__))
HOUSE = os.path.dirname(_HERE) + os.sep
"""Where the framework's own code is."""
_STATE = os.path.join(HOUSE, "state") + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep

_folders: dict[str, str] = {}
_MOST_FOLDERS = 4096


# ------------------------------------------------------------------ where a path leads


def resolve(path: Any, follow: bool) -> str | None:
    """A path as it really is, or None where it is no file; `follow` is whether a link counts.

    Folders are looked up once, until something is done that may turn one (`forget_folders`).
    """
    try:
        if isinstance(path, At):
            inner = os.fsdecode(path.path)
            base = os.getcwd() if os.path.isabs(inner) else _descriptor(path.folder)
            path = os.path.join(base or os.getcwd(), inner)
        elif type(path) is int:
            return _descriptor(path)
        else:
            path = os.fsdecode("." if path is None else path)
        if path in DEVICES:
            return None
        return _real(path, follow)
    except (ValueError, TypeError):  # no path at all: the system will say so
        return None
    except OSError:  # the current folder is gone, a link leads in a circle
        return os.path.normcase(str(path))


def _real(path: str, follow: bool) -> str:
    if not os.path.isabs(path):
        path = os.path.join(os.getcwd(), path)
    folder, name = os.path.split(path)
    if name in ("", ".", ".."):
        return os.path.normcase(os.path.realpath(path))
    real = _folders.get(folder)
    if real is None:
        if len(_folders) >= _MOST_FOLDERS:
            _folders.clear()
        real = _folders[folder] = os.path.realpath(folder)
    whole = os.path.join(real, name)
    if follow and os.path.islink(whole):
        whole = os.path.realpath(whole)
    return os.path.normcase(whole)


def forget_folders() -> None:
    """A folder may be another one now."""
    _folders.clear()


def _descriptor(fd: int) -> str | None:
    """What a descriptor is open on, where the system tells; pipes and sockets are no files."""
    try:
        found = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return None
    return found if found[:1] == os.sep else None


# ------------------------------------------------------------------ what Python needs


class Places:
    """Where code is: noted before a command could add to it, looked into when it is asked for."""

    def __init__(self) -> None:
        here = os.getcwd() if "" in sys.path else ""
        self._entries = tuple([entry or here for entry in sys.path])
        homes: set[str] = set()
        for name, module in tuple(sys.modules.items()):
            home = getattr(module, "__file__", None)
            if "." not in name and isinstance(home, str):
                folder, file = os.path.split(home)
                homes.add(os.path.dirname(folder) if file[:9] == "__init__." else folder)
        self._homes = homes
        self._libraries: tuple[str, ...] | None = None
        self._sources: tuple[str, ...] = ()

    @property
    def libraries(self) -> tuple[str, ...]:
        """Where anything may be read: installed packages, the standard library, public files."""
        if self._libraries is None:
            share = os.path.join(sys.base_prefix, "share", "locale")
            found = {os.path.dirname(os.__file__), os.path.dirname(HOUSE), share, *PUBLIC}
            found |= {one for one in (*self._entries, *self._homes) if _is_installed(one)}
            sources = {*self._entries, *self._homes} - found
            self._sources = _prefixes({os.path.realpath(one) for one in sources} - {os.sep})
            self._libraries = _prefixes(
                map(os.path.realpath, (*found, sys.executable or os.devnull))
            )
        return self._libraries

    @property
    def sources(self) -> tuple[str, ...]:
        """Where modules of the app are: code may be read there, and nothing else."""
        return self._sources if self.libraries else ()


def _is_installed(folder: str) -> bool:
    parts = folder.split(os.sep)
    return "site-packages" in parts or "dist-packages" in parts


def _prefixes(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple([os.path.normcase(path).rstrip(os.sep) + os.sep for path in paths])


_places: list[Places] = []


def places() -> Places:
    """Where code is, in this process."""
    if not _places:
        _places.append(Places())
    return _places[0]


rooms: list[str] = []
"""Folders that a call has to itself, for what is temporary; each ends with a slash."""


def is_needed(act: str, where: str) -> bool:
    """Whether it is Python that does this, not the command."""
    whole = where + os.sep
    if rooms and whole.startswith(tuple(rooms)):
        return True
    if act == "read":
        if whole.startswith(places().libraries):
            return True
        if whole.startswith(places().sources):
            if where.endswith(CODE) or ".dist-info" in where or ".egg-info" in where:
                return True
            if whole in places().sources and not os.path.isdir(where):  # an archive of modules
                return True
            if _is_importing(_caller()):
                return os.path.isdir(where)
    elif act in ("write", "make", "place", "delete") and "__pycache__" in whole:
        return _is_importing(_caller())
    return _is_keeping(_caller()) or (act == "read" and _is_clearing(_caller()))


def is_library_call() -> bool:
    """Whether code that was installed asks for native code, not the app's own."""
    frame = _caller()
    while frame is not None and _is_of(frame, "ctypes"):
        if frame.f_code.co_name == "<module>":
            return True  # it is being imported
        frame = frame.f_back
    return frame is not None and (
        (os.path.realpath(frame.f_code.co_filename) + os.sep).startswith(places().libraries)
    )


def is_pairing() -> bool:
    """Whether a socket is made for the process itself, where the system has no better way."""
    frame = _caller()
    return frame is not None and "socketpair" in frame.f_code.co_name and _is_of(frame, "socket")


def is_ours() -> bool:
    """Whether the framework works in this thread, beside a command."""
    frame = _caller()
    while frame is not None:
        if frame.f_code.co_filename.startswith(HOUSE):
            return True
        frame = frame.f_back
    return False


def _caller() -> FrameType | None:
    """The frame that did what the event is about."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame


def _is_keeping(frame: FrameType | None) -> bool:
    """Whether the framework keeps what must last, in the middle of a command that calls another."""
    while frame is not None and frame.f_code.co_filename.startswith(_STANDARD):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_STATE)


def _is_importing(frame: FrameType | None) -> bool:
    if frame is None:
        return False
    file = frame.f_code.co_filename
    return file.startswith(_IMPORTING) or _is_of(frame, "importlib") or _is_of(frame, "pkgutil")


def _is_clearing(frame: FrameType | None) -> bool:
    """Whether a tree is being removed: its top was looked at, and so is each file that goes."""
    return frame is not None and "rmtree" in frame.f_code.co_name and _is_of(frame, "shutil")


def _is_of(frame: FrameType, module: str) -> bool:
    """Whether a frame is of a module or package of the standard library."""
    home = os.path.join(os.path.dirname(os.__file__), module)
    file = frame.f_code.co_filename
    return file == f"{home}.py" or file.startswith(home + os.sep)
