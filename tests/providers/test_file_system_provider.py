from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tooli import Tooli
from tooli.errors import DefinitionError
from tooli.providers import FileSystemProvider, file_system_provider


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def names(provider: FileSystemProvider) -> list[str]:
    return [tool.key for tool in provider.tools()]


def run(provider: FileSystemProvider, key: str, **arguments: Any) -> Any:
    (fn,) = [tool.fn for tool in provider.tools() if tool.key == key]
    return fn(**arguments)


def test_tools_of_files(tmp_path: Path) -> None:
    write(
        tmp_path / "orders.py",
        """
from os.path import join
from functools import partial

def list_orders(limit: int = 3) -> list[int]:
    "List the orders."
    return list(range(limit))

alias = list_orders

def helper(x):
    return x

def half(x: int): ...

def _private(x: int) -> int: ...

class Order:
    def __call__(self, x: int) -> int: ...
""",
    )
    write(
        tmp_path / "user_admin" / "marked.py",
        """
from tooli.annotations import Destructive
from tooli.providers import tool

@tool
def first(a: int) -> int:
    return a

@tool("renamed", annotations=Destructive)
def second(a):
    return a

def third(a: int) -> int:
    return a
""",
    )
    write(tmp_path / "_shared.py", "def hidden() -> int: ...")
    write(tmp_path / ".git" / "hook.py", "def hidden() -> int: ...")
    write(tmp_path / "_private" / "x.py", "def hidden() -> int: ...")
    write(tmp_path / "notes.txt", "def hidden() -> int: ...")
    provider = FileSystemProvider(tmp_path)
    assert names(provider) == ["list-orders", "user-admin.first", "user-admin.renamed"]
    assert provider.name == tmp_path.name
    assert not provider.problems
    assert list(provider.tools())[2].behavior.destructive


def test_relative_folder_starts_at_the_calling_file(tmp_path: Path) -> None:
    """The current folder may be that of a project that is not trusted."""
    assert FileSystemProvider("x").directory == str(Path(__file__).parent / "x")
    write(tmp_path / "app" / "tools" / "a.py", "def answer() -> int:\n    return 42")
    write(
        tmp_path / "app" / "main.py",
        "from tooli import Tooli\nfrom tooli.providers import FileSystemProvider\n"
        "app = Tooli('x')\napp.add_provider(FileSystemProvider('tools'))\napp()",
    )
    write(tmp_path / "tools" / "a.py", "def answer() -> int:\n    return 13")
    command = [sys.executable, str(tmp_path / "app" / "main.py"), "answer", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert '"result":42' in done.stdout


def test_relative_folder_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(file_system_provider, "calling_location", lambda: "<stdin>:1")
    assert FileSystemProvider("x").directory == str(Path.cwd() / "x")


def test_edits_of_equal_size_are_seen(tmp_path: Path) -> None:
    """The .pyc file of a quick edit would be that of the version before."""
    file = tmp_path / "a.py"
    results: list[int] = []
    provider = FileSystemProvider(tmp_path)
    for i in range(5):
        write(file, f"def answer() -> int:\n    return {i}")
        results.append(run(provider, "answer"))
    assert results == [0, 1, 2, 3, 4]


def test_unchanged_file_keeps_its_state(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "n = []\ndef count() -> int:\n    n.append(1)\n    return len(n)")
    write(tmp_path / "b.py", "def answer() -> int:\n    return 1")
    provider = FileSystemProvider(tmp_path)
    run(provider, "count")
    write(tmp_path / "b.py", "def answer() -> int:\n    return 2 ")
    assert (run(provider, "count"), run(provider, "answer")) == (2, 2)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("class End(BaseException): ...\nraise End('of all')", "End: of all"),
        (
            "class Odd(Exception):\n    def __str__(self):\n        raise SystemExit(7)\nraise Odd",
            "Odd: SystemExit",
        ),
        ("def f(:", "line 1: invalid syntax"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("from . import x", "Error: .*relative import.*import shared code from a package"),
        (
            "from tooli.providers import tool\n@tool(capabilities=['xx'])\ndef f() -> int: ...",
            "capabilities",
        ),
        ("\0", "source code string|null bytes"),
    ],
)
def test_broken_file(tmp_path: Path, text: str, problem: str) -> None:
    """It keeps its last tools, and the other files work."""
    write(tmp_path / "good.py", "def good() -> int:\n    return 1")
    write(tmp_path / "bad.py", "def bad() -> int:\n    return 2")
    provider = FileSystemProvider(tmp_path)
    assert names(provider) == ["bad", "good"]
    write(tmp_path / "bad.py", text)
    assert (run(provider, "bad"), run(provider, "good")) == (2, 1)
    assert re.search(f"{problem}.*; its last tools are kept", provider.problems["bad.py"])
    other = FileSystemProvider(tmp_path)
    assert names(other) == ["good"]
    assert re.search(problem, other.problems["bad.py"])
    write(tmp_path / "bad.py", "def better() -> int:\n    return 3")
    assert names(provider) == ["better", "good"]
    assert not provider.problems
    (tmp_path / "bad.py").unlink()
    assert names(provider) == ["good"]


def test_interrupt_while_a_file_runs_is_passed_on(tmp_path: Path) -> None:
    write(tmp_path / "a.py", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        names(FileSystemProvider(tmp_path))


def test_problems_are_reported(tmp_path: Path) -> None:
    write(tmp_path / "good.py", "def good() -> int:\n    return 1")
    write(tmp_path / "bad.py", "1 / 0  # \x1b[31m")
    app = Tooli("shop")
    app.add_provider(FileSystemProvider(tmp_path, name="files"), namespace="files")
    assert app.call("files.good").result == 1
    assert [str(problem) for problem in app.catalog.problems.values()] == [
        f"the provider 'files': bad.py: ZeroDivisionError: division by zero ({location()})"
    ]


def location() -> str:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    line = next(i for i, text in enumerate(lines, 1) if 'namespace="files"' in text)
    return f"{__file__}:{line}"


def test_output_of_a_file_goes_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "a.py", "print('noise')\ndef answer() -> int:\n    return 1")
    names(FileSystemProvider(tmp_path))
    assert capsys.readouterr() == ("", "noise\n")


def test_data_classes_and_annotations_as_text(tmp_path: Path) -> None:
    write(
        tmp_path / "a.py",
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Order:\n    id: int\n"
        "def make(order: Order) -> list[Order]:\n    return [order]",
    )
    app = Tooli("shop")
    app.add_provider(FileSystemProvider(tmp_path))
    assert app.call("make", order={"id": 3}).to_dict()["result"] == [{"id": 3}]


def test_missing_folder(tmp_path: Path) -> None:
    provider = FileSystemProvider(tmp_path / "missing")
    with pytest.raises(DefinitionError, match="is not a folder"):
        names(provider)


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_system_provider, "MAX_FILES", 2)
    for i in range(3):
        write(tmp_path / f"m{i}.py", f"def f{i}() -> int: ...")
    with pytest.raises(DefinitionError, match="has more than 2 Python files"):
        names(FileSystemProvider(tmp_path))


def test_thousand_files_with_random_edits(tmp_path: Path) -> None:
    for i in range(1000):
        write(tmp_path / f"m{i}.py", f"def f{i}() -> int:\n    return {i}")
    provider = FileSystemProvider(tmp_path)
    assert len(names(provider)) == 1000
    expected = {f"f{i}": i for i in range(1000)}
    generator = random.Random(1)
    for step in range(100):
        i = generator.randrange(1000)
        broken = generator.random() < 0.3
        expected[f"f{i}"] = expected[f"f{i}"] if broken else step
        write(tmp_path / f"m{i}.py", f"def f{i}() -> int:\n    return {step}{' (' * broken}")
    found = {tool.key: tool.fn() for tool in provider.tools()}
    assert found == expected


def test_hot_reload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_system_provider, "POLL_SECONDS", 0.01)
    write(tmp_path / "a.py", "def first() -> int:\n    return 1")
    provider = FileSystemProvider(tmp_path, hot_reload=True)
    assert names(provider) == ["first"]
    seen, found = Event(), list[list[str]]()

    def changed() -> None:
        found.append(names(provider))
        seen.set()

    provider.watch(changed)
    write(tmp_path / "b.py", "def second() -> int:\n    return 1")
    assert seen.wait(60)
    provider.close()
    assert found[-1] == ["first", "second"]


def test_no_thread_without_hot_reload(tmp_path: Path) -> None:
    import threading

    before = threading.active_count()
    FileSystemProvider(tmp_path).watch(lambda: None)
    assert threading.active_count() == before


def test_folder_that_vanishes_while_it_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_system_provider, "POLL_SECONDS", 0.01)
    folder = tmp_path / "tools"
    write(folder / "a.py", "def first() -> int:\n    return 1")
    provider = FileSystemProvider(folder, hot_reload=True)
    names(provider)
    seen = Event()
    provider.watch(seen.set)
    os.rename(folder, tmp_path / "other")
    assert not seen.wait(0.2)
    write(folder / "b.py", "def second() -> int:\n    return 1")
    assert seen.wait(60)
    provider.close()
    assert names(provider) == ["second"]
