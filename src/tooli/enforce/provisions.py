"""What a Python process reads and runs without having been told to: modules, libraries, zones.

The caller chooses the environment and often the layout, so neither opens more than is meant: of a
folder that somebody named only what is code, a program or a certificate, each looked at.
"""

from __future__ import annotations

import os
import sys

from tooli.enforce.landlock import is_below
from tooli.enforce.needs import CODE, HOUSE, PUBLIC

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

LIBRARIES = ("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib64", "/usr/local/lib")
LINKING = (
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld-musl-x86_64.path"),
)
"""What the loader of native libraries reads, and Python never sees."""
SOURCES = ("/dev/urandom", "/dev/random", "/dev/zero")
DEVICES = ("/dev/null", "/dev/full")
"""Devices to read from, and those that may be written to as well; the terminal is none of them."""
RESOLVING = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf"),
    *("/etc/services", "/etc/protocols", "/etc/networks", "/run/systemd/resolve"),
)
"""How names of machines become addresses."""
PROGRAMS = (
    *("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"),
    *("/usr/libexec", "/usr/share", "/etc/alternatives"),
)
_LIBRARY = os.path.dirname(os.path.realpath(os.path.dirname(os.__file__)))
"""Where Python itself may lie as a library, which a Python that is started needs."""
_INSTALLED = ("site-packages", "dist-packages", "lib-dynload")
_PROGRAM = (b"\x7fELF", b"#!")  # how one begins
_OF_WINDOWS = (".dll", ".exe")  # WSL has folders with thousands of them in the PATH
_CERTIFICATE, _KEY = (b"-----BEGIN CERTIFICATE-----", b"-----BEGIN TRUSTED CERT"), b"PRIVATE KEY-"
_LARGEST = 16 << 20  # bytes of a file of certificates


def readable(net: bool) -> tuple[list[str], list[str]]:
    """Every place that must be readable for Python to go on importing; links lead there, too.

    And the folders of which only the names are: an import looks through them.
    """
    found, listed = modules()
    found += (*LIBRARIES, *LINKING, *PUBLIC, *SOURCES)
    if net:
        found += (*RESOLVING, *certificates())
    return found, listed


def programs() -> Iterator[str]:
    """The system's folders of programs; of those that the caller names only the programs."""
    base = os.path.join(sys.base_prefix, "bin")
    whole = dict.fromkeys((*PROGRAMS, *LIBRARIES, base))
    yield from whole
    yield from [one.path for one in _entries(_LIBRARY) if one.name.startswith("libpython")]
    known = [os.path.realpath(one) for one in whole]
    said = os.environ.get("PATH", "").split(os.pathsep)
    for folder in dict.fromkeys((os.path.join(sys.prefix, "bin"), *filter(None, said))):
        real = os.path.realpath(folder)
        if not any([is_below(real, one) for one in known]):
            yield from [one.path for one in _entries(folder) if _is_program(one)]


def _is_program(entry: os.DirEntry[str]) -> bool:
    try:
        return (
            not entry.name.endswith(_OF_WINDOWS)
            and entry.is_file()
            and os.access(entry.path, os.X_OK)
            and _beginning(entry.path, 4).startswith(_PROGRAM)
        )
    except OSError:
        return False


def certificates() -> Iterator[str]:
    """Certificates that variables name, where they are some: no other file becomes one by that."""
    single = os.environ.get("SSL_CERT_FILE")
    if single:
        yield from filter(_is_certificate, (single,))
    for folder in filter(None, os.environ.get("SSL_CERT_DIR", "").split(os.pathsep)):
        if not any([is_below(os.path.realpath(folder), one) for one in PUBLIC]):
            yield from [one.path for one in _entries(folder) if _is_certificate(one.path)]


def _is_certificate(path: str) -> bool:
    """Whether a file holds certificates, and no key of anybody's."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _LARGEST:
            return False
        text = _beginning(path, _LARGEST)
    except OSError:
        return False
    return any([mark in text for mark in _CERTIFICATE]) and _KEY not in text


def _beginning(path: str, most: int) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(most)


# ------------------------------------------------------------------ modules


def modules() -> tuple[list[str], list[str]]:
    """Where modules are: whole folders of Python's own and of what is installed, else the code.

    A script may lie in somebody's home, and a project may be its own virtual environment.
    """
    standard = os.path.realpath(os.path.dirname(os.__file__))
    found, packages = [standard, HOUSE], list[str]()
    if sys.prefix != sys.base_prefix:
        found.append(os.path.join(sys.prefix, "pyvenv.cfg"))
    entries = dict.fromkeys([os.path.realpath(entry or os.curdir) for entry in sys.path])
    for entry in entries:
        if os.path.basename(entry) in _INSTALLED:
            found.append(entry)
        elif not is_below(entry, standard):
            singles, more = _code_in(entry)
            found += singles
            packages += more
    packages += [one for one in _loaded() if os.path.realpath(os.path.dirname(one)) not in entries]
    listed: list[str] = []
    for folder in packages:
        if not is_below(folder, HOUSE[:-1]):
            inner, whole = _code_of(folder)
            found += inner
            listed += [] if whole else [folder]
    return found, listed


def _loaded() -> Iterator[str]:
    """Packages that are there already: editable installs are found in ways of their own."""
    for name, module in list(sys.modules.items()):
        if "." not in name:
            folders: Any = getattr(module, "__path__", None) or ()
            for folder in map(str, folders):
                if os.path.isfile(os.path.join(folder, "__init__.py")):
                    yield folder


def _code_in(folder: str) -> tuple[list[str], list[str]]:
    """The modules of a folder that holds other things as well, and its packages."""
    if os.path.isfile(folder):
        return [folder] * _is_archive(folder), []
    singles: list[str] = []
    packages: list[str] = []
    for entry in _entries(folder):
        if entry.name.endswith(("__pycache__", ".dist-info", ".egg-info")) or _is_code(entry):
            singles.append(entry.path)
        elif _is_package(entry):
            packages.append(entry.path)
    return singles, packages


def _code_of(folder: str) -> tuple[list[str], bool]:
    """What is code in a package, and whether all is: then the folder stands for it.

    A folder below counts where it holds code; nobody looks further down otherwise.
    """
    found: list[str] = []
    whole, holds = True, False
    for entry in _entries(folder):
        if entry.name == "__pycache__":
            found.append(entry.path)
        elif entry.is_dir(follow_symlinks=False):
            inner, all_of_it = _code_of(entry.path) if entry.name.isidentifier() else ([], False)
            found += inner
            whole = whole and all_of_it
        elif _is_code(entry):
            found.append(entry.path)
            holds = True
            whole = whole and not entry.is_symlink()  # it leads elsewhere
        else:
            whole = False
    if not holds:
        return [], False
    return ([folder], True) if whole else (found, False)


def _is_code(entry: os.DirEntry[str]) -> bool:
    return (entry.name.endswith(CODE) or ".so." in entry.name) and entry.is_file()


def _is_package(entry: os.DirEntry[str]) -> bool:
    return entry.name.isidentifier() and os.path.isfile(os.path.join(entry.path, "__init__.py"))


def _is_archive(path: str) -> bool:
    """Whether a file holds modules; the list of them is what Python has made of it."""
    import zipimport

    try:
        zipimport.zipimporter(path)
    except ImportError:
        return False
    known: Any = zipimport
    names: Iterable[str] = known._zip_directory_cache.get(path, ())
    return any([name.endswith((".py", ".pyc")) for name in names])


def _entries(folder: str) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return ()


def remember_modules() -> None:
    """Let the finders of modules list their folders now, while they can."""
    for finder in sys.meta_path:
        find: Any = getattr(finder, "find_spec", None)
        if find is not None and getattr(finder, "__name__", "") == "PathFinder":
            find("tooli_looks_for_nothing")
