"""Find the files that a Python process needs to run: modules, libraries, certificates.

The caller controls environment variables such as PATH. In a folder that a variable names, only the
code, programs and certificates become readable, and each file is checked.

An earlier call of a sandboxed command may have changed the folders that it may write to. Code is
therefore searched without following links, up to a maximum number of files, and not at all in the
folders that the command may write to.
"""

from __future__ import annotations

import os
import re
import sys
from itertools import islice

from tooli.core import Record
from tooli.core.declared_capabilities import is_under_any
from tooli.execution.monitor.actions import CODE_SUFFIXES, PACKAGE_DIR, PUBLIC_PATHS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tooli.core.declared_capabilities import AllowedAccess

LIBRARY_DIRS = ("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib64", "/usr/local/lib")
LOADER_FILES = (
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld-musl-x86_64.path"),
)
"""Files of the dynamic linker."""
READABLE_DEVICES = ("/dev/urandom", "/dev/random", "/dev/zero")
WRITABLE_DEVICES = ("/dev/null", "/dev/full")
"""Devices that can be read, and devices that can be written. The terminal is not included."""
KERNEL_DIRS = ("/proc", "/sys", "/dev")
"""Interfaces of the kernel. To write there, a command must declare a path in one of them."""
MEMORY_DIR = "/dev/shm"
"""A folder in memory, which is not an interface of the kernel."""
_KERNEL_FILE_SYSTEMS = frozenset(
    (
        *("bpf", "binfmt_misc", "cgroup", "cgroup2", "configfs", "debugfs", "devtmpfs"),
        *("efivarfs", "fusectl", "proc", "pstore", "securityfs", "selinuxfs", "smackfs", "sysfs"),
        "tracefs",
    )
)
RESOLVER_FILES = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf"),
    *("/etc/services", "/etc/protocols", "/etc/networks", "/run/systemd/resolve"),
)
"""Files that are read to resolve host names."""
PROGRAM_DIRS = (
    *("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"),
    *("/usr/libexec", "/usr/share", "/etc/alternatives"),
)
_INSTALL_DIR_NAMES = ("site-packages", "dist-packages", "lib-dynload")
_EXECUTABLE_MAGIC = (b"\x7fELF", b"#!")  # first bytes of programs and scripts
_METADATA_SUFFIXES = (".dist-info", ".egg-info")
_WINDOWS_SUFFIXES = (".dll", ".exe")  # WSL has thousands of them in PATH
_CERTIFICATE_MARKERS, _PRIVATE_KEY_MARKER = (
    (b"-----BEGIN CERTIFICATE-----", b"-----BEGIN TRUSTED CERT"),
    b"PRIVATE KEY-",
)
_MAX_CERTIFICATE_BYTES = 16 << 20  # maximum size of a certificate file
_MAX_FOLDER_ENTRIES, _MAX_PACKAGE_ENTRIES, _MAX_PACKAGE_DEPTH = 20_000, 10_000, 32
"""How much is searched for code: entries of a folder; entries and levels of a package."""


class RuntimePaths(Record):
    """The paths that Python needs.

    The paths of `code` and `listed_dirs` contain no links. If one does when it is opened, it was
    replaced after the search.
    """

    system: list[str]  # to read; installed by an administrator or by the user
    code: list[str]  # to read; modules in other folders
    listed_dirs: list[str]  # to list


def find_readable_paths(access: AllowedAccess) -> RuntimePaths:
    """Return the paths that Python must be able to read or list."""
    writable = writable_paths(access)
    found = find_module_paths(writable)
    system = [*found.system, *LIBRARY_DIRS, *LOADER_FILES, *PUBLIC_PATHS, *READABLE_DEVICES]
    if access.net:
        system += (*RESOLVER_FILES, *find_certificates(writable))
    return found.replace(system=system)


def writable_paths(access: AllowedAccess) -> tuple[str, ...]:
    """Return the declared paths that a command can change.

    A command that may write everywhere can change what the user runs, so no path is excluded.
    """
    return (*(access.writes or ()), *(access.deletes or ()))


def find_kernel_dirs() -> tuple[str, ...]:
    """Return the folders with interfaces of the kernel.

    For root these include other places at which such a file system is mounted.
    """
    if os.geteuid() != 0:
        return KERNEL_DIRS
    with open("/proc/self/mountinfo", "rb") as file:
        lines = file.read().splitlines()
    found: list[str] = [*KERNEL_DIRS]
    for line in lines:
        fields, _, file_system = line.partition(b" - ")
        if os.fsdecode(file_system.split(b" ")[0]) in _KERNEL_FILE_SYSTEMS:
            escaped = fields.split(b" ")[4]  # a space is written as \040
            path = os.fsdecode(
                re.sub(rb"\\(\d{3})", lambda match: bytes([int(match[1], 8)]), escaped)
            )
            if not is_under_any(path, tuple(found)):
                found.append(path)
    return tuple(found)


def _is_writable(path: str, writable: tuple[str, ...]) -> bool:
    """True if a path is in a writable folder, or a link in such a folder leads to it."""
    if not writable:
        return False
    current, parent = os.path.abspath(path), ""
    while current != parent:
        if is_under_any(os.path.realpath(current), writable):
            return True
        current, parent = os.path.dirname(current), current
    return False


def find_programs(writable: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the program folders of the system, and each program in the other folders of PATH."""
    base = os.path.join(sys.base_prefix, "bin")
    system_dirs = dict.fromkeys((*PROGRAM_DIRS, *LIBRARY_DIRS, base))
    yield from system_dirs
    yield from find_libpython()
    known_dirs = tuple([os.path.realpath(entry) for entry in system_dirs])
    path_entries = os.environ.get("PATH", "").split(os.pathsep)
    for folder in dict.fromkeys((os.path.join(sys.prefix, "bin"), *filter(None, path_entries))):
        if not is_under_any(os.path.realpath(folder), known_dirs) and not _is_writable(
            folder, writable
        ):
            yield from [entry.path for entry in _scan_directory(folder) if _is_program(entry)]


def find_libpython() -> list[str]:
    """Return the files of libpython, which a new Python process needs."""
    library = os.path.realpath(os.path.dirname(os.__file__))
    folders = dict.fromkeys((os.path.dirname(library), os.path.join(sys.base_prefix, "lib")))
    return [
        entry.path
        for folder in folders
        for entry in _scan_directory(folder)
        if entry.name.startswith("libpython")
    ]


def _is_program(entry: os.DirEntry[str]) -> bool:
    try:
        return (
            not entry.name.endswith(_WINDOWS_SUFFIXES)
            and entry.is_file()
            and os.access(entry.path, os.X_OK)
            and _read_head(entry.path, 4).startswith(_EXECUTABLE_MAGIC)
        )
    except OSError:
        return False


def find_certificates(writable: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the files with certificates that SSL_CERT_FILE and SSL_CERT_DIR name."""
    cert_file = os.environ.get("SSL_CERT_FILE")
    if cert_file and not _is_writable(cert_file, writable):
        yield from filter(_is_certificate, (cert_file,))
    for folder in filter(None, os.environ.get("SSL_CERT_DIR", "").split(os.pathsep)):
        if not is_under_any(os.path.realpath(folder), PUBLIC_PATHS) and not _is_writable(
            folder, writable
        ):
            yield from [
                entry.path for entry in _scan_directory(folder) if _is_certificate(entry.path)
            ]


def _is_certificate(path: str) -> bool:
    """True if a file contains certificates and no private key."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _MAX_CERTIFICATE_BYTES:
            return False
        text = _read_head(path, _MAX_CERTIFICATE_BYTES)
    except OSError:
        return False
    return (
        any([marker in text for marker in _CERTIFICATE_MARKERS]) and _PRIVATE_KEY_MARKER not in text
    )


def _read_head(path: str, max_bytes: int) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(max_bytes)


# ------------------------------------------------------------------ modules


def find_module_paths(writable: tuple[str, ...] = ()) -> RuntimePaths:
    """Return the paths of modules, and the folders that Python must be able to list.

    A folder of installed packages is returned as one path. For other folders, only the paths of
    code are returned, because a script may be in a home folder, and a project folder may be a
    virtual environment. Code in writable folders is not returned.
    """
    standard = os.path.realpath(os.path.dirname(os.__file__))
    system, code, packages = [standard, PACKAGE_DIR], list[str](), list[str]()
    if sys.prefix != sys.base_prefix:
        system.append(os.path.join(sys.prefix, "pyvenv.cfg"))
    entries = {os.path.realpath(entry or os.curdir): entry or os.curdir for entry in sys.path}
    for folder, entry in entries.items():
        if os.path.basename(folder) in _INSTALL_DIR_NAMES:
            system.append(folder)
        elif not is_under_any(folder, (standard,)) and not _is_writable(entry, writable):
            files, subpackages = _scan_path_entry(folder)
            code += files
            packages += subpackages
    packages += [
        package
        for package in map(os.path.realpath, _loaded_packages(writable))
        if os.path.dirname(package) not in entries
    ]
    listed_dirs: list[str] = []
    for folder in packages:
        if not is_under_any(folder, (PACKAGE_DIR,)):
            code_paths, is_all_code = _scan_package(folder, writable)
            code += code_paths
            listed_dirs += [] if is_all_code else [folder]
    code = [path for path in code if not is_under_any(path, writable)]
    return RuntimePaths(system, code, listed_dirs)


def _loaded_packages(writable: tuple[str, ...]) -> Iterator[str]:
    """Yield the folders of imported packages, editable installs included."""
    for name, module in list(sys.modules.items()):
        if "." not in name:
            folders: Any = getattr(module, "__path__", None) or ()
            for folder in map(str, folders):
                if os.path.isfile(os.path.join(folder, "__init__.py")) and not _is_writable(
                    folder, writable
                ):
                    yield folder


def _scan_path_entry(folder: str) -> tuple[list[str], list[str]]:
    """Return the modules and the packages of a folder that contains other files as well."""
    if os.path.isfile(folder):
        return [folder] * _is_archive(folder), []
    files: list[str] = []
    packages: list[str] = []
    for entry in _scan_directory(folder, _MAX_FOLDER_ENTRIES):
        kind = _code_kind(entry)
        is_metadata = entry.name.endswith(_METADATA_SUFFIXES) and kind != "link"
        if kind in ("cache", "code") or is_metadata:
            files.append(entry.path)
        elif kind == "folder" and os.path.isfile(os.path.join(entry.path, "__init__.py")):
            packages.append(entry.path)
    return files, packages


class _PackageFolder:
    """A folder of a package: its code, and whether it contains nothing else."""

    def __init__(self, path: str, parent: _PackageFolder | None) -> None:
        self.path = path
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.code: list[str] = []
        self.is_all_code = True

    def scan(self, max_entries: int, writable: tuple[str, ...]) -> tuple[list[str], int]:
        """Find the code; return the subfolders to scan, and the number of entries."""
        subfolders: list[str] = []
        has_code = False
        entries = _scan_directory(self.path, max_entries + 1)
        for entry in entries:
            kind = _code_kind(entry)
            if writable and is_under_any(entry.path, writable):
                self.is_all_code = False
            elif kind == "folder":
                subfolders.append(entry.path)
            elif kind in ("cache", "code"):
                self.code.append(entry.path)
                has_code = has_code or kind == "code"
            else:
                self.is_all_code = False
        if not has_code or len(entries) > max_entries:
            self.is_all_code = False
        if not has_code:
            self.code, subfolders = [], []
        elif subfolders and self.depth >= _MAX_PACKAGE_DEPTH:
            self.is_all_code, subfolders = False, []
        return subfolders, len(entries)


def _scan_package(folder: str, writable: tuple[str, ...] = ()) -> tuple[list[str], bool]:
    """Return the code of a package, and whether the whole folder is code.

    A subfolder without code is skipped, together with everything below it. Of a package that is
    too large or too deep, only a part is returned.
    """
    root = _PackageFolder(folder, None)
    folders, remaining = [root], _MAX_PACKAGE_ENTRIES
    for current in folders:  # grows while it is read
        subfolders, count = current.scan(max(remaining, 0), writable)
        remaining -= count
        folders += [_PackageFolder(path, current) for path in subfolders]
    for current in reversed(folders):  # subfolders first
        if current.is_all_code:
            current.code = [current.path]
        if current.parent is not None:
            current.parent.code += current.code
            current.parent.is_all_code = current.parent.is_all_code and current.is_all_code
    return root.code, root.is_all_code


def _code_kind(entry: os.DirEntry[str]) -> str:
    """Return "code", "cache", "folder" (one that may be a package), "link" or "other"."""
    try:
        if entry.is_symlink():
            return "link"
        if entry.is_dir(follow_symlinks=False):
            if entry.name == "__pycache__":
                return "cache"
            return "folder" if entry.name.isidentifier() else "other"
        is_code_name = entry.name.endswith(CODE_SUFFIXES) or ".so." in entry.name
        return "code" if is_code_name and entry.is_file(follow_symlinks=False) else "other"
    except OSError:
        return "other"


def _is_archive(path: str) -> bool:
    """True if a file is a zip archive with modules."""
    import zipimport

    try:
        zipimport.zipimporter(path)
    except ImportError:
        return False
    zipimport_module: Any = zipimport
    names: Iterable[str] = zipimport_module._zip_directory_cache.get(path, ())
    return any([name.endswith((".py", ".pyc")) for name in names])


def _scan_directory(folder: str, max_entries: int | None = None) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, max_entries))
    except OSError:
        return []


def warm_import_caches() -> None:
    """Make the import system list its folders now, while it can read them."""
    for finder in sys.meta_path:
        find_spec: Any = getattr(finder, "find_spec", None)
        if find_spec is not None and getattr(finder, "__name__", "") == "PathFinder":
            find_spec("tooli_nonexistent_module")
