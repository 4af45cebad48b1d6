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
TAKEN: list[str | int] = ["2xx"]


def settings(default: list[str | int], expected: dict[str, list[int]]) -> str:
    """schemathesis' settings: what else a valid request of an operation may be answered with."""
    lines = [f"checks.positive_data_acceptance.expected-statuses = {default}"]
    for name, statuses in expected.items():
        broken = [status for status in statuses if status >= 500]
        lines += [
            f"[[operations]]\ninclude-path = '/tools/{name}'",
            f"checks.positive_data_acceptance.expected-statuses = {[*default, *statuses]}",
            f"checks.not_a_server_error.expected-statuses = {['2xx', '4xx', *broken]}",
        ]
    return "\n".join(lines)


ZOO = settings(
    TAKEN,
    {
        # what no schema can say: what the author's own parser and callback want
        **{name: [422] for name in ("parsed", "checked")},
        # a human is needed, and over HTTP there is none
        "launch": [428],
        # they fail on purpose: with a status that the document has, and an envelope that fits it
        **{name: [403, 404, 409, 422, 428, 500, 502, 503, 504] for name in ("fail", "afail")},
        **{name: [404] for name in ("count", "acount")},
        "breaking": [500],
        "interrupted": [503],
        "say": [500],  # it ends itself with an exit code
    },
)
FILES = settings([*TAKEN, 403, 404, 422], {})  # no schema can say which paths exist, and whose


@pytest.mark.parametrize(
    ("app", "text", "examples", "more"),
    [
        ("zoo", ZOO, 3, ()),
        ("files", FILES, 15, ("--header", "Authorization: Bearer secret")),
    ],
    ids=["zoo", "files"],
)
def test_the_api_keeps_its_promises(
    tmp_path: Path, app: str, text: str, examples: int, more
) -> None:
    (tmp_path / "a.txt").write_text("TODO\n")
    (tmp_path / "settings.toml").write_text(text)
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
                *("--header", "Prefer: handling=strict", "--max-examples", str(examples)),
                *("--seed", "1", "--generation-database", "none", "--no-color", *more),
            ],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
    finally:
        server.terminate()
        server.communicate(timeout=120)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
