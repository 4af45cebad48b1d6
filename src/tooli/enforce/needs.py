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
    ("nul", "NUL", "CON", "CONIN$", "CONOUT$")
    if os.name == "nt"
    else (
        *("/dev/null", "/dev/full", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/tty"),
        *("/dev/stdin", "/dev/stdout", "/dev/stderr"),
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

_DOTS = ("", ".", "..")
_LOADS = ("_find_and_load", "exec_module", "load_module")  # functions that importing is made of
_SHOWS = ("traceback", "warnings", "inspect")  # modules that read source to show it
_PATH_ONLY = getattr(os, "O_PATH", 0)  # where there is none, the kernel cannot be asked
_GONE = " (deleted)"


# ------------------------------------------------------------------ where a path leads


def resolve(path: Any, follow: bool) -> str | None:
    """A path as it really is, or None where it is no file; `follow` is whether a link counts."""
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
    if follow:
        return os.path.normcase(_end_of(path))
    folder, name = os.path.split(path)
    if name in _DOTS:
        return os.path.normcase(_end_of(path))
    return os.path.normcase(os.path.join(_end_of(folder), name))


def _end_of(path: str) -> str:
    """Where an absolute path leads now, its links followed.

    Nothing of it is remembered: another process may turn the link of a folder at any time.
    """
    found = _told(path)
    if found is None and not os.path.lexists(path):  # it is to be made: its folder is there
        folder, name = os.path.split(path)
        above = None if name in _DOTS else _told(folder)
        found = None if above is None else os.path.join(above, name)
    return found or os.path.realpath(path)


def _told(path: str) -> str | None:
    """The same of something that exists, in the kernel's own words: faster than to look for links
    in every folder on the way; None where it does not tell."""
    if not _PATH_ONLY:
        return None
    try:
        fd = os.open(path, _PATH_ONLY)
    except OSError:
        return None
    try:
        found = _descriptor(fd)
    finally:
        os.close(fd)
    return None if found is None or found.endswith(_GONE) else found


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
            self._sources = prefixes({os.path.realpath(one) for one in sources} - {os.sep})
            self._libraries = prefixes(
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


def prefixes(paths: Iterable[str]) -> tuple[str, ...]:
    """Real paths as what the paths at and below them begin with, once those end with a slash."""
    return tuple([os.path.normcase(path).rstrip(os.sep) + os.sep for path in paths])


_places: list[Places] = []


def places() -> Places:
    """Where code is, in this process."""
    if not _places:
        _places.append(Places())
    return _places[0]


rooms: list[str] = []
"""Folders that a call has to itself, for what is temporary; each ends with a slash."""


def is_needed(act: str, where: str, ordered: bool = False) -> bool:
    """Whether it is Python that does this, not the command.

    Where the owner's lists refuse it (`ordered`), the app's own code is read by who imports it,
    and to show it where something failed; not by anybody who names a file that ends like one.
    """
    whole = where + os.sep
    if rooms and whole.startswith(tuple(rooms)):
        return True
    if act == "read":
        if whole.startswith(places().libraries):
            return True
        if whole.startswith(places().sources):
            if _is_loading(_caller()) or _is_showing(_caller()) if ordered else _is_code(where):
                return True
            if _is_importing(_caller()):
                return os.path.isdir(where)
    elif act in ("write", "make", "place", "delete") and "__pycache__" in whole:
        return _is_importing(_caller())
    return _is_keeping(_caller()) or (act == "read" and _is_clearing(_caller()))


def _is_code(where: str) -> bool:
    """Whether a file looks like code, or like what says of code where it comes from."""
    if where.endswith(CODE) or ".dist-info" in where or ".egg-info" in where:
        return True
    archive = where + os.sep in places().sources  # of modules
    return archive and not os.path.isdir(where)


def is_library_call() -> bool:
    """Whether code that was installed asks for native code, not the app's own."""
    frame = _caller()
    while frame is not None and _is_of(frame, "ctypes"):
        if frame.f_code.co_name == "<module>":
            return True  # it is being imported
        frame = frame.f_back
    return frame is not None and _is_installed_code(frame)


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


def _is_installed_code(frame: FrameType) -> bool:
    file = os.path.realpath(frame.f_code.co_filename)
    return (file + os.sep).startswith(places().libraries)


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


def _is_loading(frame: FrameType | None) -> bool:
    """Whether a module is really being imported, and nobody but Python and libraries reads it."""
    while frame is not None and not frame.f_code.co_filename.startswith(HOUSE):
        file = frame.f_code.co_filename
        if file.startswith(_IMPORTING):
            if frame.f_code.co_name in _LOADS:
                return True
        elif not _is_installed_code(frame):
            return False
        frame = frame.f_back
    return False


def _is_showing(frame: FrameType | None) -> bool:
    """Whether the standard library shows a line of code that is loaded already."""
    while frame is not None and frame.f_code.co_filename.startswith(_STANDARD):
        if any([_is_of(frame, module) for module in _SHOWS]):
            return True
        if "excepthook" in frame.f_code.co_name and _is_of(frame, "threading"):
            return True
        frame = frame.f_back
    return False


def _is_clearing(frame: FrameType | None) -> bool:
    """Whether a tree is being removed: its top was looked at, and so is each file that goes."""
    return frame is not None and "rmtree" in frame.f_code.co_name and _is_of(frame, "shutil")


def _is_of(frame: FrameType, module: str) -> bool:
    """Whether a frame is of a module or package of the standard library."""
    home = os.path.join(os.path.dirname(os.__file__), module)
    file = frame.f_code.co_filename
    return file == f"{home}.py" or file.startswith(home + os.sep)
