"""What a Python process reads and runs without having been told to: modules, libraries, zones."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

LIBRARIES = ("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib64", "/usr/local/lib")
FACTS = (
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld-musl-x86_64.path"),
    *("/etc/localtime", "/etc/timezone", "/usr/share/zoneinfo", "/usr/share/locale"),
    *("/usr/share/i18n", "/etc/locale.alias", "/etc/mime.types", "/usr/share/mime"),
    *("/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs"),
    *("/etc/pki/ca-trust/extracted", "/etc/ca-certificates", "/usr/share/ca-certificates"),
    *("/usr/local/share/ca-certificates", "/etc/crypto-policies", "/etc/os-release"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/sys/vm/overcommit_memory"),
    *("/sys/devices/system/cpu", "/dev/urandom", "/dev/random", "/dev/zero"),
)
"""Facts about the machine that libraries look up, and that are nobody's secret."""
DEVICES = ("/dev/null", "/dev/full")
"""What may be written to as well."""
RESOLVING = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf"),
    *("/etc/services", "/etc/protocols", "/etc/networks", "/run/systemd/resolve"),
)
"""How names of machines become addresses."""
PROGRAMS = (
    *("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"),
    *("/usr/libexec", "/usr/share", "/etc/alternatives"),
)
_CODE = (".py", ".pyc", ".so", ".zip", ".pth")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def readable(net: bool) -> Iterator[str]:
    """Every place that must be readable for Python to go on importing; links lead there, too."""
    said = [os.environ.get(name, "") for name in _CERTIFICATES]
    yield from (*LIBRARIES, *FACTS, *(RESOLVING if net else ()), *filter(None, said))
    yield from modules()


def programs() -> Iterator[str]:
    """Every folder that holds programs."""
    ours = [os.path.join(prefix, "bin") for prefix in (sys.prefix, sys.base_prefix)]
    path = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    yield from dict.fromkeys((*PROGRAMS, *LIBRARIES, *ours, *path))


def modules() -> Iterator[str]:
    """Where modules are: whole folders of Python's own and of packages, else the code in them.

    A script may lie in somebody's home: of its folder only code and packages are readable.
    """
    ours = {os.path.realpath(place) for place in (sys.prefix, os.path.dirname(os.__file__))}
    if sys.prefix == sys.base_prefix:
        ours.discard(os.path.realpath(sys.prefix))  # /usr, most often: more than Python's
    yield from ours
    for entry in dict.fromkeys([os.path.realpath(entry or os.curdir) for entry in sys.path]):
        if os.path.basename(entry) in ("site-packages", "dist-packages", "lib-dynload"):
            yield entry
        elif not any([entry == own or entry.startswith(own + "/") for own in ours]):
            yield from _code_in(entry)
    for name, module in list(sys.modules.items()):
        if "." not in name:  # a package that was found another way, as editable installs are
            folders: Any = getattr(module, "__path__", None) or ()
            for folder in map(str, folders):
                if os.path.isfile(os.path.join(folder, "__init__.py")):
                    yield folder


def _code_in(folder: str) -> Iterator[str]:
    """The modules and packages of a folder that holds other things as well."""
    if os.path.isfile(folder):  # a zip of modules
        yield folder
        return
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except OSError:
        return
    for entry in found:
        if entry.name.endswith(_CODE) or entry.name == "__pycache__" or _is_package(entry):
            yield entry.path


def _is_package(entry: os.DirEntry[str]) -> bool:
    if not entry.name.isidentifier():
        return entry.name.endswith((".dist-info", ".egg-info"))
    return os.path.isfile(os.path.join(entry.path, "__init__.py"))


def remember_modules() -> None:
    """Let the finders of modules list their folders now, while they can."""
    for finder in sys.meta_path:
        find: Any = getattr(finder, "find_spec", None)
        if find is not None and getattr(finder, "__name__", "") == "PathFinder":
            find("tooli_looks_for_nothing")
