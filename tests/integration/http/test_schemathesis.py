"""schemathesis asks what the OpenAPI document promises, with all of its checks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("schemathesis")
pytest.importorskip("uvicorn")

ROOM = Path(__file__).parent
REPOSITORY = ROOM.parents[2]
EXPECTED = "checks.positive_data_acceptance.expected-statuses = ['2xx', 401, 403, 404, 409, 428"
STRICTER = ("take-money", "maybe-money", "parsed", "checked")
"""Their schemas cannot say all that they want: the text of a Decimal, what the author checks."""

ZOO = "\n".join(
    [
        f"{EXPECTED}]",
        *(f"[[operations]]\ninclude-path = '/tools/{name}'\n{EXPECTED}, 422]" for name in STRICTER),
    ]
)
FILES = f"{EXPECTED}, 422]"  # a path must exist, and no schema can say so


@pytest.mark.parametrize(
    ("app", "settings", "examples", "more"),
    [
        ("zoo", ZOO, 3, ()),
        ("files", FILES, 15, ("--header", "Authorization: Bearer secret")),
    ],
    ids=["zoo", "files"],
)
def test_the_api_keeps_its_promises(
    tmp_path: Path, app: str, settings: str, examples: int, more
) -> None:
    (tmp_path / "a.txt").write_text("TODO\n")
    (tmp_path / "settings.toml").write_text(settings)
    paths = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "src")])
    environment = {
        **os.environ,
        "PYTHONPATH": paths,
        "SCHEMATHESIS_HOOKS": "tests.integration.http.hooks",
        "TOOLI_STATE_DIR": str(tmp_path),
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.http.checked", app],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    try:
        assert server.stderr is not None
        line = server.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", "settings.toml"),
                *("run", f"{found.group()}/openapi.json", "--checks", "all"),
                *("--exclude-checks", "negative_data_rejection", "--max-examples", str(examples)),
                *("--seed", "1", "--generation-database", "none", "--no-color", *more),
            ],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
    finally:
        server.terminate()
        server.communicate(timeout=20)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert (tmp_path / "judged").exists(), "the check of our own was never asked"
