"""The example for LangChain works with the real LangChain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.integration.frameworks import environment

SCRIPT = Path(__file__).with_name("run_langchain_example.py")


def test_model_gets_the_result_or_the_error_with_its_suggestion(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("print(1)\n")
    program = environment.ROOT / "examples" / "file_tools" / "app.py"
    variables = {
        "PYTHONPATH": str(environment.ROOT / "examples" / "callers"),
        "FILE_TOOLS": f"{sys.executable} {program}",
        "LANGSMITH_TRACING": "false",
    }
    done = subprocess.run(
        [environment.python(), SCRIPT],
        cwd=tmp_path,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (status, files), (error_status, error) = json.loads(done.stdout)
    assert (status, [file["path"] for file in files]) == ("success", ["main.py"])
    assert (error_status, error["code"]) == ("error", "E3001")
    assert "suggestion" in error
