"""Write the folder of the benchmarks: the apps of `apps/`, generated apps, a script for each.

A script imports its app, like an installed console script. The bytecode of the app is therefore
cached, and a long app is not compiled at each start.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.envs import CACHE
from harness.help_desk_apps import help_desk_apps
from harness.output_formats import answer_apps
from harness.servers import served_apps

APPS = Path(__file__).resolve().parents[1] / "apps"
APP_FOLDER = CACHE / "apps"
SIZES = (2, 50, 200)

TOOLI_HEAD = 'from tooli import Tooli\n\napp = Tooli(name="many", version="1.0.0")\n'
TOOLI_COMMAND = '''
@app.command()
def cmd_{n}(name: str, count: int = 1) -> str:
    """Greet in way {n}."""
    return " ".join(["hello {n}", name] * count)
'''
PLAIN_TAIL = "\n\ndef main() -> None:\n    app()\n"

SETTINGS = "# settings of a project\noutput: json\ntimeout: 30\napps:\n  demo:\n    quiet: true\n"

SHOW = """
def show(tool: str, result: object, start: float, as_json: bool) -> None:
    if not as_json:
        print(result)
        return
    took = int((time.perf_counter() - start) * 1000)
    meta = {"tool": f"many.{tool}", "version": "1.0.0", "duration_ms": took}
    print(json.dumps({"ok": True, "result": result, "meta": meta}, separators=(",", ":")))
"""

TYPER_HEAD = f"""import json
import time
from typing import Annotated

import typer

app = typer.Typer()
AsJson = Annotated[bool, typer.Option("--json")]

{SHOW}"""
TYPER_COMMAND = '''
@app.command()
def cmd_{n}(name: str, count: int = 1, as_json: AsJson = False) -> None:
    """Greet in way {n}."""
    start = time.perf_counter()
    show("cmd-{n}", " ".join(["hello {n}", name] * count), start, as_json)
'''

CLICK_HEAD = f"""import json
import time

import click

{SHOW}

@click.group()
def app() -> None:
    pass
"""
CLICK_COMMAND = '''
@app.command("cmd-{n}")
@click.argument("name")
@click.option("--count", type=int, default=1)
@click.option("--json", "as_json", is_flag=True)
def cmd_{n}(name: str, count: int, as_json: bool) -> None:
    """Greet in way {n}."""
    start = time.perf_counter()
    show("cmd-{n}", " ".join(["hello {n}", name] * count), start, as_json)
'''

ARGPARSE_HEAD = f"""import argparse
import json
import time

parser = argparse.ArgumentParser(prog="many")
commands = parser.add_subparsers(dest="command", required=True)

{SHOW}"""
ARGPARSE_COMMAND = '''
def cmd_{n}(name: str, count: int = 1) -> str:
    """Greet in way {n}."""
    return " ".join(["hello {n}", name] * count)


one = commands.add_parser("cmd-{n}", help="Greet in way {n}.")
one.add_argument("name")
one.add_argument("--count", type=int, default=1)
one.add_argument("--json", action="store_true")
one.set_defaults(run=cmd_{n})
'''
ARGPARSE_TAIL = """

def main() -> None:
    args = parser.parse_args()
    start = time.perf_counter()
    show(args.command, args.run(args.name, args.count), start, args.json)
"""
MANY = {
    "tooli": (TOOLI_HEAD, TOOLI_COMMAND, PLAIN_TAIL),
    "typer": (TYPER_HEAD, TYPER_COMMAND, PLAIN_TAIL),
    "click": (CLICK_HEAD, CLICK_COMMAND, PLAIN_TAIL),
    "argparse": (ARGPARSE_HEAD, ARGPARSE_COMMAND, ARGPARSE_TAIL),
}

MIXED_HEAD = f"""from enum import Enum
from pathlib import Path
from typing import Optional

{TOOLI_HEAD}

class Mode(Enum):
    FAST = "fast"
    SAFE = "safe"
"""
MIXED_PARAMETERS = (
    "text: str, number: int = 1",
    "path: Path, verbose: bool = False, note: Optional[str] = None",
    "factor: float, mode: Mode = Mode.SAFE, tag: list[str] = []",
    "first: int, second: int, ratio: float = 0.5, quiet: bool = True",
    "root: Path, pattern: str = '*', depth: Optional[int] = None, mode: Mode = Mode.FAST",
)
MIXED_RESULTS = ("str", "int", "list[str]", "dict[str, int]", "bool")
# The older tooli has no flag that prints all schemas. The manifest contains them.
OLD_MANIFEST_TAIL = """

def main() -> None:
    from tooli.manifest import manifest_as_json

    print(manifest_as_json(app))
"""


def many_commands_app(kind: str, count: int) -> str:
    """Return the source of an app with `count` similar commands."""
    head, command, tail = MANY[kind]
    return head + "\n".join(command.replace("{n}", str(n)) for n in range(count)) + tail


def mixed_types_app(tail: str) -> str:
    """Return the source of an app with fifty commands that have parameters of various types."""
    parts = [MIXED_HEAD]
    for n in range(50):
        parameters = MIXED_PARAMETERS[n % len(MIXED_PARAMETERS)]
        result = MIXED_RESULTS[n % len(MIXED_RESULTS)]
        parts.append(
            f"\n@app.command()\ndef cmd_{n}({parameters}) -> {result}:\n"
            f'    """Do the work of step {n}."""\n    raise NotImplementedError\n'
        )
    return "\n".join(parts) + tail


def generated_apps() -> Iterator[tuple[str, str]]:
    """Yield each generated app: module name and source."""
    for kind in MANY:
        for size in SIZES:
            yield f"many_{kind}_{size}", many_commands_app(kind, size)
    yield "mixed_tooli", mixed_types_app(PLAIN_TAIL)
    yield "mixed_old", mixed_types_app(OLD_MANIFEST_TAIL)
    yield from served_apps()
    yield from help_desk_apps()
    yield from answer_apps()


@contextmanager
def benchmark_lock() -> Generator[None, None, None]:
    """Wait until no other benchmark of this checkout runs, because it would affect the results."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_apps() -> Path:
    """Write all apps to an empty folder and return it."""
    shutil.rmtree(APP_FOLDER, ignore_errors=True)
    APP_FOLDER.mkdir(parents=True)
    sources = {path.stem: path.read_text() for path in sorted(APPS.glob("*.py"))}
    sources.update(generated_apps())
    for name, source in sources.items():
        (APP_FOLDER / f"{name}.py").write_text(source)
        (APP_FOLDER / f"run_{name}.py").write_text(f"from {name} import main\n\nmain()\n")
    (APP_FOLDER / "agent").mkdir()
    (APP_FOLDER / "settings").mkdir()
    (APP_FOLDER / "settings" / ".tooli.yaml").write_text(SETTINGS)
    return APP_FOLDER
