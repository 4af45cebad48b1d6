"""Variables and folder layouts that could give an isolated command more access.

Each function gets the folder of the app, which contains `secret.txt`, and returns how to run the
app. The test searches for the token in the answer of the command.
"""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evasions import TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

APP = '''
import os
from tooli import Tooli

app = Tooli("isolated")


def show(path: str) -> str:
    """Return the content of a file, and the environment."""
    variables = " ".join(os.environ.values())
    try:
        with open(path, errors="replace") as file:
            return variables + file.read()
    except PermissionError:
        return variables


app.command("free")(show)
app.command("silent", isolation="required")(show)
app.command("none", isolation="required", capabilities=["none"])(show)
app.command("net", isolation="required", capabilities=["net:read"])(show)
app.command("spawn", isolation="required", capabilities=["proc:spawn"])(show)
app.command("env", isolation="required", capabilities=["env:read"])(show)

if __name__ == "__main__":
    app()
'''


CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


class RunSetup(NamedTuple):
    """How to run the app."""

    variables: dict[str, str] = {}
    path: str = "secret.txt"
    program: str = sys.executable


class Attempt(NamedTuple):
    """One layout, and the commands that must not get more access because of it."""

    name: str
    commands: tuple[str, ...]
    create_workspace: Callable[[Path], RunSetup]


ATTEMPTS: list[Attempt] = []


def attempt(*commands: str) -> Callable[[Callable[[Path], RunSetup]], None]:
    """Add a layout to the table."""

    def enter(fn: Callable[[Path], RunSetup]) -> None:
        ATTEMPTS.append(Attempt(fn.__name__, commands, fn))

    return enter


@attempt("none", "net")
def certificate_file(folder: Path) -> RunSetup:
    """SSL_CERT_FILE names another file"""
    return RunSetup({"SSL_CERT_FILE": str(folder / "secret.txt")})


@attempt("none", "net")
def certificate_folder(folder: Path) -> RunSetup:
    """SSL_CERT_DIR names the project"""
    return RunSetup({"SSL_CERT_DIR": str(folder)})


@attempt("net")
def certificate_folders(folder: Path) -> RunSetup:
    """SSL_CERT_DIR is a list, as OpenSSL accepts it"""
    return RunSetup({"SSL_CERT_DIR": f"/nowhere:{folder}"})


@attempt("none", "net")
def certificate_with_its_key(folder: Path) -> RunSetup:
    """SSL_CERT_FILE names a certificate and its private key"""
    key = f"-----BEGIN PRIVATE KEY-----\n{TOKEN}\n-----END PRIVATE KEY-----\n"
    (folder / "server.pem").write_text(f"{CERTIFICATE}{key}")
    return RunSetup({"SSL_CERT_FILE": str(folder / "server.pem")}, "server.pem")


def make_environment(folder: Path) -> dict[str, str]:
    """Make the folder a virtual environment; the packages of the app are elsewhere."""
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to(os.path.realpath(sys.executable))
    home = os.path.dirname(os.path.realpath(sys.executable))
    (folder / "pyvenv.cfg").write_text(f"home = {home}\n")
    return {"PYTHONPATH": os.pathsep.join([one for one in sys.path if one])}


@attempt("none", "spawn")
def project_as_environment(folder: Path) -> RunSetup:
    """`python -m venv .`: the project is sys.prefix"""
    return RunSetup(make_environment(folder), program=str(folder / "bin/python"))


@attempt("none", "spawn")
def data_beside_its_programs(folder: Path) -> RunSetup:
    """a virtual environment with data beside its programs"""
    made = make_environment(folder)
    (folder / "bin/secret.txt").write_text(TOKEN)
    return RunSetup(made, "bin/secret.txt", str(folder / "bin/python"))


@attempt("none")
def package_around_it(folder: Path) -> RunSetup:
    """data in a package beside the script"""
    (folder / "pkg/deep").mkdir(parents=True)
    for name in ("pkg/__init__.py", "pkg/deep/__init__.py"):
        (folder / name).write_text("")
    (folder / "pkg/deep/data.txt").write_text(TOKEN)
    return RunSetup(path="pkg/deep/data.txt")


@attempt("none")
def folder_that_is_called_code(folder: Path) -> RunSetup:
    """a folder with the name of a module"""
    (folder / "data.py").mkdir()
    (folder / "data.py/secret.txt").write_text(TOKEN)
    return RunSetup(path="data.py/secret.txt")


@attempt("none")
def archive_beside_it(folder: Path) -> RunSetup:
    """an archive beside the script"""
    with zipfile.ZipFile(folder / "backup.zip", "w") as file:
        file.writestr("secret.txt", TOKEN)
    return RunSetup(path="backup.zip")


@attempt("none")
def file_to_import_from(folder: Path) -> RunSetup:
    """PYTHONPATH names a file"""
    return RunSetup({"PYTHONPATH": str(folder / "secret.txt")})


@attempt("none")
def archive_to_import_from(folder: Path) -> RunSetup:
    """PYTHONPATH names an archive without modules"""
    with zipfile.ZipFile(folder / "data.docx", "w") as file:
        file.writestr("secret.txt", TOKEN)
    return RunSetup({"PYTHONPATH": str(folder / "data.docx")}, "data.docx")


@attempt("none", "spawn")
def folder_of_programs(folder: Path) -> RunSetup:
    """PATH names the project, where every file may be executed"""
    (folder / "secret.txt").chmod(0o755)
    return RunSetup({"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"})


@attempt("none", "spawn")
def folder_below_one_of_programs(folder: Path) -> RunSetup:
    """PATH names a parent folder"""
    (folder / "deep").mkdir()
    (folder / "deep/secret.txt").write_text(TOKEN)
    return RunSetup({"PATH": f"{folder}:{os.environ['PATH']}"}, "deep/secret.txt")


@attempt("none", "env")
def address_of_the_store(folder: Path) -> RunSetup:
    """TOOLI_STORE with a password"""
    return RunSetup({"TOOLI_STORE": f"postgresql://u:{TOKEN}@127.0.0.1/db"}, "app.py")


@attempt("none")
def variable_of_a_plausible_name(folder: Path) -> RunSetup:
    """a variable with the prefix of tooli"""
    return RunSetup({"TOOLI_PASSWORD": TOKEN}, "app.py")


@attempt("none", "silent")
def denied_package(folder: Path) -> RunSetup:
    """code that deny_paths denies, for a command that declares nothing"""
    (folder / "private").mkdir()
    (folder / "private/__init__.py").write_text("")
    (folder / "private/settings.py").write_text(f"PASSWORD = {TOKEN!r}")
    return RunSetup({"TOOLI_DENY_PATHS": "./private"}, "private/settings.py")
