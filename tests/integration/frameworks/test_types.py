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
@pytest.mark.parametrize("name", environment.EXPORT_ENVIRONMENTS)
def test_exports_pass_the_type_checker(name: str, tmp_path: Path) -> None:
    targets = [path for path in SNAPSHOTS.iterdir() if path.is_dir()]
    for path in targets:
        if environment.environment_of(path.name.rpartition("-")[0]) == name:
            shutil.copytree(path, tmp_path / "exports" / path.name)
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
        [*pyright, "--pythonpath", environment.python(name)],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=tmp_path,
    )
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] >= len(list((tmp_path / "exports").rglob("*.py"))) > 1
    errors = [
        f"{Path(each['file']).relative_to(tmp_path)}: {each['message']}"
        for each in found["generalDiagnostics"]
    ]
    assert not errors
