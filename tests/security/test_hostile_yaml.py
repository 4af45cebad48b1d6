"""YAML of callers and sources: deep nesting, aliases and merge keys end no process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

APP = """
from tooli import StdinOr, Tooli
from tooli.providers import OpenAPIProvider

app = Tooli("app")
app.add_provider(OpenAPIProvider("api.yaml"), namespace="api")

@app.command()
def count(data: StdinOr[dict]) -> int:
    return len(data)

app()
"""

TEXTS = {
    "nesting": "a: " + "[" * 100_000,
    "sequences": "a:\n  " + "- " * 100_000 + "x",
    "aliases": "\n".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10 if i else 'x')}]" for i in range(10)
    ),
    "merge keys": "a0: &a0 {k: v}\n"
    + "\n".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}" for i in range(1, 10)),
    "sexagesimal number": "a: 1" + ":59" * 200_000,
}


@pytest.mark.parametrize("words", [["count", "input.yaml"], ["api", "get-x"]])
@pytest.mark.parametrize("attack", TEXTS)
def test_yaml_of_others(attack: str, words: list[str], tmp_path: Path) -> None:
    """The call fails with an error of tooli: the process neither dies nor fills its memory."""
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "input.yaml").write_text(TEXTS[attack])
    head = "openapi: 3.1.0\ninfo: {title: a, version: '1'}\npaths: {/x: {get: {responses: {}}}}\n"
    (tmp_path / "api.yaml").write_text(head + TEXTS[attack])
    limited = "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)); "
    limited += "import runpy, sys; sys.argv[:] = sys.argv[1:]; runpy.run_path('app.py')"
    done = subprocess.run(
        [sys.executable, "-c", limited, "app.py", *words, "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode > 0, done.stderr
    error = json.loads(done.stdout)["error"]
    assert "not valid YAML" in error["message"]
