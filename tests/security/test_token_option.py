"""A token on the command line of a server, which other users can see."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from tests.integration.app_process import environment

APP = """
from tooli import Tooli
app = Tooli("demo")
app.command("one")(lambda: 1)
app.command("two")(lambda: 2)
app()
"""


@pytest.mark.parametrize("command", [["api", "serve"], ["mcp", "serve", "--transport", "http"]])
@pytest.mark.parametrize(
    ("option", "variables", "is_warned"),
    [
        ("--token", {}, True),
        ("--token-file", {}, False),
        (None, {"TOOLI_TOKEN": "hush"}, False),
        ("--token-file", {"TOOLI_TOKEN": "other"}, False),
    ],
)
def test_visible_token_is_warned_about(
    tmp_path: Path,
    command: list[str],
    option: str | None,
    variables: dict[str, str],
    is_warned: bool,
) -> None:
    (tmp_path / "app.py").write_text(APP)
    file = tmp_path / "token"
    file.write_text("hush")
    file.chmod(0o600)
    value = "hush" if option == "--token" else str(file)
    process = subprocess.Popen(
        [sys.executable, "app.py", *command, "--port", "0", *([option, value] if option else ())],
        cwd=tmp_path,
        env=environment(**variables),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = [process.stderr.readline()]
    if "is served at" not in lines[0]:
        lines.append(process.stderr.readline())
    process.terminate()
    process.communicate(timeout=120)
    assert "is served at" in lines[-1]
    assert ("Use --token-file" in lines[0]) is is_warned
    assert "hush" not in "".join(lines)


def test_readable_token_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    file = tmp_path / "token"
    file.write_text("hush")
    file.chmod(0o644)
    argv = [sys.executable, "app.py", "api", "serve", "--port", "0", "--token-file", "token"]
    result = subprocess.run(
        [*argv, "--json"], cwd=tmp_path, env=environment(), capture_output=True, timeout=120
    )
    assert result.returncode == 2
    assert json.loads(result.stdout)["error"]["code"] == "E1020"
