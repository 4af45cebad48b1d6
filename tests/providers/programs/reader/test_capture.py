from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.providers.programs.sample_programs import write

from tooli.providers.programs.program_reading import _BOOT


def capture(request: dict[str, Any], cwd: Path) -> dict[str, Any]:
    request = {"arguments": [], "prog": "tool", **request}
    done = subprocess.run(
        [sys.executable, "-c", _BOOT, json.dumps(request)], capture_output=True, cwd=cwd
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def read(folder: Path, code: str, *arguments: str) -> dict[str, Any]:
    path = str(write(folder / "tool.py", code))
    return capture({"kind": "script", "path": path, "arguments": list(arguments)}, folder)


def flags(found: dict[str, Any]) -> list[str]:
    return [flag for level in found["levels"] for p in level["params"] for flag in p["flags"]]


PARSER = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--x')\n"
CLICK = "import click\n@click.command()\n@click.option('--x')\ndef f(x): raise SystemExit(9)\n"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (PARSER + "p.parse_args()", "argparse"),
        (PARSER + "p.parse_known_args()", "argparse"),
        (PARSER + "p.parse_intermixed_args()", "argparse"),
        (PARSER + "import sys\nif len(sys.argv) < 2: sys.exit('usage')", "argparse"),
        ("import optparse\np = optparse.OptionParser()\np.add_option('--x')\np.parse_args()",) * 1
        + ("optparse",),
        ("from getopt import getopt\ngetopt(['a'], 'a:', ['x='])", "getopt"),
        ("import getopt\ngetopt.gnu_getopt(['a'], '', 'x')", "getopt"),
        (CLICK + "f()", "click"),
        (CLICK + "f.main(['a'], standalone_mode=False)", "click"),
        (CLICK + "f.make_context('f', [])", "click"),
        (CLICK + "try:\n  f()\nexcept BaseException:\n  raise SystemExit(8)", "click"),
        ("import typer\ndef f(x: int = 1): ...\ntyper.run(f)", "typer"),
        ("import threading\n" + PARSER + "threading.Thread(target=p.parse_args).start()",) * 1
        + ("argparse",),
    ],
)
def test_parsers(tmp_path: Path, code: str, kind: str) -> None:
    found = read(tmp_path, code)
    assert (found["kind"], flags(found)[0]) == (kind, "--x")


def test_apps_of_tooli(tmp_path: Path) -> None:
    code = "from tooli import Tooli\napp = Tooli('a')\n@app.command()\n"
    found = read(tmp_path, code + "def f(x: int = 1) -> int: return x\napp()")
    assert found["kind"] == "typer" and "--x" in flags(found)


def test_parsers_that_run_before_the_parser(tmp_path: Path) -> None:
    pre = "import argparse\nq = argparse.ArgumentParser(add_help=False)\nq.add_argument('--c')\n"
    pre += "known, rest = q.parse_known_args()\nassert known.c is None\n"
    assert flags(read(tmp_path, pre + PARSER + "p.parse_args(rest)")) == ["--x"]
    assert flags(read(tmp_path, pre)) == ["--c"]  # the only one


def test_the_largest_of_several_parsers(tmp_path: Path) -> None:
    small = PARSER.replace("p", "q").replace("argqarse", "argparse").replace("ArgumentParser", "A")
    code = "import argparse\nA = B = argparse.ArgumentParser\nq = A()\np = B()\n"
    code += "p.add_argument('--a')\np.add_argument('--b')\nimport sys; sys.exit(1)"
    assert flags(read(tmp_path, code)) == ["--a", "--b"] and small


def test_programs_without_a_parser(tmp_path: Path) -> None:
    assert read(tmp_path, "x = 1")["error"] == "it ended without reading its command line"
    assert read(tmp_path, "exit(3)")["error"].startswith("it exited (3)")
    assert "ZeroDivisionError" in read(tmp_path, "1 / 0")["error"]
    (tmp_path / "fire").mkdir()
    write(tmp_path / "fire" / "__init__.py", "")
    write(tmp_path / "fire" / "core.py", "Fire = print")
    assert "Fire" in read(tmp_path, "import fire.core\nfire.core.Fire()")["error"]


def test_parsers_that_cannot_be_described(tmp_path: Path) -> None:
    code = PARSER + "p._actions[1].option_strings = 5\np.parse_args()"
    assert "its argparse parser cannot be read: TypeError" in read(tmp_path, code)["error"]


def test_output_of_the_program_is_discarded(tmp_path: Path) -> None:
    code = "import os\nprint('x' * 10**6, flush=True)\nos.write(1, b'y')\nassert input == input\n"
    code += "import sys\nassert sys.stdin.read() == ''\n"
    assert flags(read(tmp_path, code + PARSER + "p.parse_args()")) == ["--x"]


def test_copies_of_the_process_write_nothing(tmp_path: Path) -> None:
    fork = "import os\n" if sys.platform == "win32" else "import os; os.fork()\n"
    assert flags(read(tmp_path, fork + PARSER + "p.parse_args()")) == ["--x"]


def test_modules_and_entry_points(tmp_path: Path) -> None:
    write(tmp_path / "shopping.py", CLICK + "class A: run = f")
    path = [str(tmp_path)]
    request = {"kind": "module", "module": "shopping", "attribute": "A.run", "sys_path": path}
    found = capture(request, tmp_path)
    assert flags(found) == ["--x"]
    assert str(tmp_path / "shopping.py") in found["files"]
    assert not [name for name in found["files"] if "/reader/" in name]
    installed = tmp_path / "shopping-1.0.dist-info"
    installed.mkdir()
    write(installed / "METADATA", "Metadata-Version: 2.1\nName: shopping\nVersion: 1.0\n")
    write(installed / "entry_points.txt", "[console_scripts]\nshop = shopping:f\n")
    entry = {"kind": "entry_point", "name": "shop", "sys_path": path}
    assert flags(capture(entry, tmp_path)) == ["--x"]
    missing = capture({**entry, "name": "nope"}, tmp_path)
    assert "no installed package has the console script 'nope'" in missing["error"]
