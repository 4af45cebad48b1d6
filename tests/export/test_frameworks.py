"""Exports of many apps are valid, formatted, lint-free and deterministic Python."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from examples.file_tools.app import app as file_tools
from tests.integration.frameworks.everything import DIFFICULT_TEXT
from tests.integration.frameworks.everything import app as everything
from tests.parity.sample_apps import make_app, make_callback_app, make_single_command_app

from tooli import Tooli
from tooli.annotations import Destructive
from tooli.describe.sections import collect_app_info
from tooli.export import CALLERS, export
from tooli.export.export_spec import ExportSpec

MODES = ("subprocess", "import")
NAMES = ("call", "json", "app", "list", "make-tool", "2fa", "TOOLS", "run", "tool", "class")


def make_app_with_reserved_names() -> Tooli:
    """An app whose commands have the names that generated modules use."""
    app = Tooli("names", version='1"\n')
    for name in NAMES:
        app.command(name)(lambda: None)
    return app


def make_destructive_app() -> Tooli:
    """An app whose destructive commands have flags with the names of tooli's own."""
    app = Tooli("$danger `PREFIX` {x}")

    @app.command(annotations=Destructive)
    def wipe(yes: str = "no", force: bool = False) -> None: ...

    @app.command(annotations=Destructive)
    def burn(dry_run: int = 0) -> None: ...

    return app


APPS = {
    "file-tools": (file_tools, None),
    "everything": (everything, None),
    "sample": (make_app(), "sample_apps:app"),
    "single": (make_single_command_app(), "sample_apps:app"),
    "callback": (make_callback_app(), "sample_apps:other"),
    "names": (make_app_with_reserved_names(), "names:app"),
    "dangerous": (make_destructive_app(), "d:app"),
}


def exported(name: str, target: str, mode: str) -> dict[str, str]:
    app, location = APPS[name]
    options: dict[str, Any] = {"app": location} if mode == "import" else {}
    return export(ExportSpec(collect_app_info(app), target, mode, with_tests=True, **options))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every export of every app."""
    base = tmp_path_factory.mktemp("exports")
    for name in APPS:
        for target in CALLERS:
            for mode in MODES:
                for file, text in exported(name, target, mode).items():
                    path = base / f"{name}-{target}-{mode}" / file
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8", newline="\n")
    return base


def ruff(*args: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *args], capture_output=True, text=True, timeout=120
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_exports_are_formatted(folder: Path) -> None:
    found = ruff("format", "--isolated", "--no-cache", "--line-length", "100", "--diff", folder)
    assert not found, found[:3000]


def test_exports_are_lint_free(folder: Path) -> None:
    rules = "E,F,W,N,UP,B,C4,PIE,SIM,RUF,PERF"
    ignored = "SIM105,RUF001,RUF002,RUF003"
    options = ["--isolated", "--no-cache", "--line-length", "100", "--target-version", "py310"]
    found = ruff("check", *options, "--select", rules, "--ignore", ignored, folder)
    lines = [line for line in found.splitlines() if line[:4].strip() and " " in line]
    assert not found, "\n".join(lines[:60])


def test_exports_are_valid_on_python_3_10(folder: Path) -> None:
    files = sorted(folder.rglob("*.py"))
    assert len(files) > 200
    for file in files:
        ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 10))
    old = python_3_10()
    if old is not None:
        code = "import sys; [compile(open(f, 'rb').read(), f, 'exec') for f in sys.argv[1:]]"
        subprocess.run([old, "-W", "error", "-c", code, *files], check=True, timeout=120)


def python_3_10() -> str | None:
    """Return the path of a Python 3.10 interpreter, or None."""
    homes = sorted(Path(os.environ.get("HOME", "/"), ".pyenv", "versions").glob("3.10.*"))
    here = [str(home / "bin" / "python") for home in homes]
    return next(iter(here), None) or (sys.executable if sys.version_info < (3, 11) else None)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", CALLERS)
def test_export_is_deterministic(target: str, mode: str) -> None:
    for name in APPS:
        assert exported(name, target, mode) == exported(name, target, mode)


def test_export_is_the_same_in_every_process() -> None:
    code = """
import sys
from tests.export.test_frameworks import CALLERS, MODES, exported
for target in CALLERS:
    for mode in MODES:
        sys.stdout.write(repr(exported("everything", target, mode)))
"""
    root = Path(__file__).parents[2]
    space = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (root / "src", root)))}
    seeds = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            timeout=120,
            cwd=root,
            env={**space, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
        ).stdout
        for seed in ("1", "2")
    ]
    assert seeds[0] == seeds[1]
    assert len(seeds[0]) > 100_000


@pytest.mark.parametrize("target", sorted(set(CALLERS) - {"python"}))
def test_descriptions_and_defaults_are_unchanged(target: str) -> None:
    files = exported("everything", target, "subprocess")
    source = next(
        text for name, text in files.items() if "test_" not in name and DIFFICULT_TEXT[:9] in text
    )
    (found,) = [
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "class_"
    ]
    assert isinstance(found, ast.Call)
    keywords = {
        keyword.arg: ast.literal_eval(keyword.value)
        for keyword in found.keywords
        if keyword.arg[0] in "ds"
    }
    assert keywords["description"] == DIFFICULT_TEXT
    assert keywords["schema"]["properties"]["word"]["description"] == DIFFICULT_TEXT
    assert keywords["schema"]["properties"]["word"]["default"] == DIFFICULT_TEXT


def test_adk_agent_file_has_the_name_and_the_model() -> None:
    yaml = exported("everything", "adk", "subprocess")["adk_every_thing/root_agent.yaml"]
    assert "name: every_thing_agent\n" in yaml
    assert "Every kind of (thing)" in yaml  # ADK would look for a {thing} in its state
    files = export(ExportSpec(collect_app_info(file_tools), "adk", model="gemini-3.5-pro"))
    assert "model: gemini-3.5-pro\n" in files["adk_file_tools/root_agent.yaml"]
