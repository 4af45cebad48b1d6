"""Find the files that a Python process needs to run: modules, libraries, certificates.

The caller controls environment variables such as PATH. In a folder that a variable names, only the
code, programs and certificates become readable, and each file is checked.
"""

from __future__ import annotations

import os
import sys

from tooli.core.declared_capabilities import is_under_any
from tooli.execution.monitor.actions import CODE_SUFFIXES, PACKAGE_DIR, PUBLIC_PATHS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

LIBRARY_DIRS = ("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib64", "/usr/local/lib")
LOADER_FILES = (
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld-musl-x86_64.path"),
)
"""Files of the dynamic linker."""
READABLE_DEVICES = ("/dev/urandom", "/dev/random", "/dev/zero")
WRITABLE_DEVICES = ("/dev/null", "/dev/full")
"""Devices that can be read, and devices that can be written. The terminal is not included."""
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
_WINDOWS_SUFFIXES = (".dll", ".exe")  # WSL has thousands of them in PATH
_CERTIFICATE_MARKERS, _PRIVATE_KEY_MARKER = (
    (b"-----BEGIN CERTIFICATE-----", b"-----BEGIN TRUSTED CERT"),
    b"PRIVATE KEY-",
)
_MAX_CERTIFICATE_BYTES = 16 << 20  # maximum size of a certificate file


def find_readable_paths(net: bool) -> tuple[list[str], list[str]]:
    """Return the paths that Python must be able to read, and the folders that it must list."""
    paths, listed_dirs = find_module_paths()
    paths += (*LIBRARY_DIRS, *LOADER_FILES, *PUBLIC_PATHS, *READABLE_DEVICES)
    if net:
        paths += (*RESOLVER_FILES, *find_certificates())
    return paths, listed_dirs


def find_programs() -> Iterator[str]:
    """Yield the program folders of the system, and each program in the other folders of PATH."""
    base = os.path.join(sys.base_prefix, "bin")
    system_dirs = dict.fromkeys((*PROGRAM_DIRS, *LIBRARY_DIRS, base))
    yield from system_dirs
    yield from find_libpython()
    known_dirs = tuple([os.path.realpath(entry) for entry in system_dirs])
    path_entries = os.environ.get("PATH", "").split(os.pathsep)
    for folder in dict.fromkeys((os.path.join(sys.prefix, "bin"), *filter(None, path_entries))):
        if not is_under_any(os.path.realpath(folder), known_dirs):
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


def find_certificates() -> Iterator[str]:
    """Yield the files with certificates that SSL_CERT_FILE and SSL_CERT_DIR name."""
    cert_file = os.environ.get("SSL_CERT_FILE")
    if cert_file:
        yield from filter(_is_certificate, (cert_file,))
    for folder in filter(None, os.environ.get("SSL_CERT_DIR", "").split(os.pathsep)):
        if not is_under_any(os.path.realpath(folder), PUBLIC_PATHS):
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


def find_module_paths() -> tuple[list[str], list[str]]:
    """Return the paths of modules, and the folders that Python must be able to list.

    A folder of installed packages is returned as one path. For other folders, only the paths of
    code are returned, because a script may be in a home folder, and a project folder may be a
    virtual environment.
    """
    standard = os.path.realpath(os.path.dirname(os.__file__))
    paths, packages = [standard, PACKAGE_DIR], list[str]()
    if sys.prefix != sys.base_prefix:
        paths.append(os.path.join(sys.prefix, "pyvenv.cfg"))
    entries = dict.fromkeys([os.path.realpath(entry or os.curdir) for entry in sys.path])
    for entry in entries:
        if os.path.basename(entry) in _INSTALL_DIR_NAMES:
            paths.append(entry)
        elif not is_under_any(entry, (standard,)):
            files, subpackages = _scan_path_entry(entry)
            paths += files
            packages += subpackages
    packages += [
        package
        for package in _loaded_packages()
        if os.path.realpath(os.path.dirname(package)) not in entries
    ]
    listed_dirs: list[str] = []
    for folder in packages:
        if not is_under_any(folder, (PACKAGE_DIR,)):
            code_paths, is_all_code = _scan_package(folder)
            paths += code_paths
            listed_dirs += [] if is_all_code else [folder]
    return paths, listed_dirs


def _loaded_packages() -> Iterator[str]:
    """Yield the folders of imported packages, editable installs included."""
    for name, module in list(sys.modules.items()):
        if "." not in name:
            folders: Any = getattr(module, "__path__", None) or ()
            for folder in map(str, folders):
                if os.path.isfile(os.path.join(folder, "__init__.py")):
                    yield folder


def _scan_path_entry(folder: str) -> tuple[list[str], list[str]]:
    """Return the modules and the packages of a folder that contains other files as well."""
    if os.path.isfile(folder):
        return [folder] * _is_archive(folder), []
    files: list[str] = []
    packages: list[str] = []
    for entry in _scan_directory(folder):
        if entry.name.endswith(("__pycache__", ".dist-info", ".egg-info")) or _is_code(entry):
            files.append(entry.path)
        elif _is_package(entry):
            packages.append(entry.path)
    return files, packages


def _scan_package(folder: str) -> tuple[list[str], bool]:
    """Return the code of a package, and whether the whole folder is code.

    A subfolder without code is skipped, together with everything below it.
    """
    paths: list[str] = []
    is_all_code, has_code = True, False
    for entry in _scan_directory(folder):
        if entry.name == "__pycache__":
            paths.append(entry.path)
        elif entry.is_dir(follow_symlinks=False):
            nested_paths, is_nested_all_code = (
                _scan_package(entry.path) if entry.name.isidentifier() else ([], False)
            )
            paths += nested_paths
            is_all_code = is_all_code and is_nested_all_code
        elif _is_code(entry):
            paths.append(entry.path)
            has_code = True
            is_all_code = is_all_code and not entry.is_symlink()  # a link may point outside
        else:
            is_all_code = False
    if not has_code:
        return [], False
    return ([folder], True) if is_all_code else (paths, False)


def _is_code(entry: os.DirEntry[str]) -> bool:
    return (entry.name.endswith(CODE_SUFFIXES) or ".so." in entry.name) and entry.is_file()


def _is_package(entry: os.DirEntry[str]) -> bool:
    return entry.name.isidentifier() and os.path.isfile(os.path.join(entry.path, "__init__.py"))


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


def _scan_directory(folder: str) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return ()


def warm_import_caches() -> None:
    """Make the import system list its folders now, while it can read them."""
    for finder in sys.meta_path:
        find_spec: Any = getattr(finder, "find_spec", None)
        if find_spec is not None and getattr(finder, "__name__", "") == "PathFinder":
            find_spec("tooli_nonexistent_module")
