"""schemathesis tests the HTTP API against its OpenAPI document, with all checks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("schemathesis")
pytest.importorskip("uvicorn")

REPOSITORY = Path(__file__).parents[3]


def make_config(default: list[str | int], additional: dict[str, list[int]]) -> str:
    """Return a configuration file: the statuses that valid requests may get.

    `additional` has more statuses by operation.
    """
    lines = [f"checks.positive_data_acceptance.expected-statuses = {default}"]
    for name, statuses in additional.items():
        server_errors = [status for status in statuses if status >= 500]
        for path in (f"/tools/{name}", f"/plans/{name}"):
            lines += [
                f"[[operations]]\ninclude-path = '{path}'",
                f"checks.positive_data_acceptance.expected-statuses = {[*default, *statuses]}",
                f"checks.not_a_server_error.expected-statuses = {['2xx', '4xx', *server_errors]}",
            ]
    return "\n".join(lines)


SCRIPTS_CONFIG = """
[[operations]]
include-path = '/orchestrate'
checks.positive_data_acceptance.expected-statuses = ["2xx", 304, 400, 403, 404, 409, 422, 428]
"""
"""The schema allows scripts that are not Python, and names of functions that do not exist."""

SAMPLE_CONFIG = make_config(
    ["2xx"],
    {
        # their own parser and callback reject values that the schema allows
        **{name: [422] for name in ("parsed", "checked")},
        # it needs the approval of a human, who cannot be asked over HTTP
        "launch": [428],
        # they fail on purpose; the status and the envelope must match the document
        **{name: [403, 404, 409, 422, 428, 500, 502, 503, 504] for name in ("fail", "afail")},
        **{name: [404] for name in ("count", "acount")},
        "breaking": [500],
        "interrupted": [503],
        "say": [500],  # it exits with a code
    },
)
# the fields of a form are text, so that a list of other values cannot be sent
SAMPLE_CONFIG += """
[[operations]]
include-path = '/uploads/find-files'
checks.negative_data_rejection.expected-statuses = [200, '4xx']
"""
# the schema allows paths that do not exist or that the server may not read
FILES_CONFIG = make_config(["2xx", 403, 404, 422], {}) + SCRIPTS_CONFIG
SAMPLE_CONFIG += SCRIPTS_CONFIG
PLAN_ONLY = [
    word
    for kind in ("tools", "uploads")
    for name in ("delete", "rename")
    for word in ("--exclude-path", f"/{kind}/{name}")
]
"""These commands change files, so only their plans are tested."""


@pytest.mark.parametrize(
    ("app", "config", "max_examples", "flags"),
    [
        ("sample", SAMPLE_CONFIG, 3, ()),
        ("files", FILES_CONFIG, 15, ("--header", "Authorization: Bearer secret", *PLAN_ONLY)),
    ],
    ids=["sample", "files"],
)
def test_api_matches_its_openapi_document(
    tmp_path: Path, app: str, config: str, max_examples: int, flags: tuple[str, ...]
) -> None:
    (tmp_path / "a.txt").write_text("TODO\n")
    (tmp_path / "schemathesis.toml").write_text(config)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "src")]),
        "SCHEMATHESIS_HOOKS": "tests.integration.http.schemathesis_hooks",
        "TOOLI_STATE_DIR": str(tmp_path),
    }
    log = tmp_path / "server.log"  # a file: the commands print more than a pipe holds
    with log.open("wb") as stderr:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.http.schemathesis_apps", app],
            stderr=stderr,
            cwd=tmp_path,
            env=environment,
        )
    try:
        url = find_url(log, server)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml"),
                *("run", f"{url}/openapi.json", "--checks", "all"),
                *("--header", "Prefer: handling=strict", "--max-examples", str(max_examples)),
                *("--seed", "1", "--generation-database", "none", "--no-color", *flags),
            ],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=1500,
        )
    finally:
        server.terminate()
        server.wait(timeout=120)
    assert done.returncode == 0, done.stdout[-12000:] + done.stderr[-2000:]


def find_url(log: Path, server: subprocess.Popen[bytes]) -> str:
    """Wait until the server has written its URL."""
    while True:
        found = re.search(r"http://\S+(?=\s)", log.read_text(errors="replace"))
        if found:
            return found.group()
        assert server.poll() is None, log.read_text(errors="replace")
        time.sleep(0.05)
