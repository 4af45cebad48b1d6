"""Pyright accepts the exports together with the real frameworks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.frameworks import environment

SNAPSHOTS = environment.ROOT / "tests" / "snapshots" / "exports"


@pytest.mark.skipif(
    not environment.SUPPORTS_ALL, reason="not all frameworks run on this Python version"
)
def test_exports_pass_the_type_checker(tmp_path: Path) -> None:
    shutil.copytree(SNAPSHOTS, tmp_path / "exports")
    settings = {
        "include": ["exports"],
        "extraPaths": [str(environment.ROOT), str(environment.ROOT / "src")],
        "typeCheckingMode": "standard",
        "pythonVersion": "3.11",
    }
    config = tmp_path / "pyrightconfig.json"
    config.write_text(json.dumps(settings))
    pyright = [sys.executable, "-m", "pyright", "-p", config, "--outputjson"]
    done = subprocess.run(
        [*pyright, "--pythonpath", environment.python()],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=tmp_path,
    )
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] >= 16
    errors = [
        f"{Path(each['file']).relative_to(tmp_path)}: {each['message']}"
        for each in found["generalDiagnostics"]
    ]
    assert not errors
