"""What a caller may put around an isolated command to make it see more: variables and layouts.

Each is a function of the app's folder, which holds `secret.txt` and an app, and returns what the
app is run with. Whoever runs it looks for the token in what the command answers.
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

app = Tooli("held")


def show(path: str) -> str:
    """Tell what is in a file, and in the environment."""
    said = " ".join(os.environ.values())
    try:
        with open(path, errors="replace") as file:
            return said + file.read()
    except PermissionError:
        return said


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


class Surroundings(NamedTuple):
    """What the app is run with."""

    variables: dict[str, str] = {}
    path: str = "secret.txt"
    program: str = sys.executable


class Attempt(NamedTuple):
    """One way to put things, and the commands that must see nothing by it."""

    name: str
    commands: tuple[str, ...]
    lay_out: Callable[[Path], Surroundings]


ATTEMPTS: list[Attempt] = []


def attempt(*commands: str) -> Callable[[Callable[[Path], Surroundings]], None]:
    """Enter a layout into the table."""

    def enter(fn: Callable[[Path], Surroundings]) -> None:
        ATTEMPTS.append(Attempt(fn.__name__, commands, fn))

    return enter


@attempt("none", "net")
def certificate_file(folder: Path) -> Surroundings:
    """SSL_CERT_FILE names what is none"""
    return Surroundings({"SSL_CERT_FILE": str(folder / "secret.txt")})


@attempt("none", "net")
def certificate_folder(folder: Path) -> Surroundings:
    """SSL_CERT_DIR names the project"""
    return Surroundings({"SSL_CERT_DIR": str(folder)})


@attempt("net")
def certificate_folders(folder: Path) -> Surroundings:
    """the same in a list, as OpenSSL takes it"""
    return Surroundings({"SSL_CERT_DIR": f"/nowhere:{folder}"})


@attempt("none", "net")
def certificate_with_its_key(folder: Path) -> Surroundings:
    """SSL_CERT_FILE names a certificate and the key to it"""
    key = f"-----BEGIN PRIVATE KEY-----\n{TOKEN}\n-----END PRIVATE KEY-----\n"
    (folder / "server.pem").write_text(f"{CERTIFICATE}{key}")
    return Surroundings({"SSL_CERT_FILE": str(folder / "server.pem")}, "server.pem")


def make_environment(folder: Path) -> dict[str, str]:
    """Make a folder a virtual environment, with all that the app needs found elsewhere."""
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to(os.path.realpath(sys.executable))
    home = os.path.dirname(os.path.realpath(sys.executable))
    (folder / "pyvenv.cfg").write_text(f"home = {home}\n")
    return {"PYTHONPATH": os.pathsep.join([one for one in sys.path if one])}


@attempt("none", "spawn")
def project_as_environment(folder: Path) -> Surroundings:
    """`python -m venv .`: the project is sys.prefix"""
    return Surroundings(make_environment(folder), program=str(folder / "bin/python"))


@attempt("none", "spawn")
def data_beside_its_programs(folder: Path) -> Surroundings:
    """the same, and data where programs are"""
    made = make_environment(folder)
    (folder / "bin/secret.txt").write_text(TOKEN)
    return Surroundings(made, "bin/secret.txt", str(folder / "bin/python"))


@attempt("none")
def package_around_it(folder: Path) -> Surroundings:
    """data in a package beside the script"""
    (folder / "pkg/deep").mkdir(parents=True)
    for name in ("pkg/__init__.py", "pkg/deep/__init__.py"):
        (folder / name).write_text("")
    (folder / "pkg/deep/data.txt").write_text(TOKEN)
    return Surroundings(path="pkg/deep/data.txt")


@attempt("none")
def folder_that_is_called_code(folder: Path) -> Surroundings:
    """a folder whose name ends as a module's does"""
    (folder / "data.py").mkdir()
    (folder / "data.py/secret.txt").write_text(TOKEN)
    return Surroundings(path="data.py/secret.txt")


@attempt("none")
def archive_beside_it(folder: Path) -> Surroundings:
    """an archive beside the script"""
    with zipfile.ZipFile(folder / "backup.zip", "w") as file:
        file.writestr("secret.txt", TOKEN)
    return Surroundings(path="backup.zip")


@attempt("none")
def file_to_import_from(folder: Path) -> Surroundings:
    """PYTHONPATH names a file"""
    return Surroundings({"PYTHONPATH": str(folder / "secret.txt")})


@attempt("none")
def archive_to_import_from(folder: Path) -> Surroundings:
    """PYTHONPATH names an archive that holds no modules"""
    with zipfile.ZipFile(folder / "data.docx", "w") as file:
        file.writestr("secret.txt", TOKEN)
    return Surroundings({"PYTHONPATH": str(folder / "data.docx")}, "data.docx")


@attempt("none", "spawn")
def folder_of_programs(folder: Path) -> Surroundings:
    """PATH names the project, where every file may be executed"""
    (folder / "secret.txt").chmod(0o755)
    return Surroundings({"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"})


@attempt("none", "spawn")
def folder_below_one_of_programs(folder: Path) -> Surroundings:
    """PATH names a folder above"""
    (folder / "deep").mkdir()
    (folder / "deep/secret.txt").write_text(TOKEN)
    return Surroundings({"PATH": f"{folder}:{os.environ['PATH']}"}, "deep/secret.txt")


@attempt("none", "env")
def address_of_the_store(folder: Path) -> Surroundings:
    """TOOLI_STORE, with the password in it"""
    return Surroundings({"TOOLI_STORE": f"postgresql://u:{TOKEN}@127.0.0.1/db"}, "held.py")


@attempt("none")
def variable_of_a_plausible_name(folder: Path) -> Surroundings:
    """a variable that is called as ours are"""
    return Surroundings({"TOOLI_PASSWORD": TOKEN}, "held.py")


@attempt("none", "silent")
def denied_package(folder: Path) -> Surroundings:
    """code that the owner denies, to a command that declares nothing"""
    (folder / "private").mkdir()
    (folder / "private/__init__.py").write_text("")
    (folder / "private/settings.py").write_text(f"PASSWORD = {TOKEN!r}")
    return Surroundings({"TOOLI_DENY_PATHS": "./private"}, "private/settings.py")
