"""schemathesis tests the HTTP API against its OpenAPI document, with all checks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
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
        lines += [
            f"[[operations]]\ninclude-path = '/tools/{name}'",
            f"checks.positive_data_acceptance.expected-statuses = {[*default, *statuses]}",
            f"checks.not_a_server_error.expected-statuses = {['2xx', '4xx', *server_errors]}",
        ]
    return "\n".join(lines)


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
# the schema allows paths that do not exist or that the server may not read
FILES_CONFIG = make_config(["2xx", 403, 404, 422], {})


@pytest.mark.parametrize(
    ("app", "config", "max_examples", "flags"),
    [
        ("sample", SAMPLE_CONFIG, 3, ()),
        ("files", FILES_CONFIG, 15, ("--header", "Authorization: Bearer secret")),
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
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.http.schemathesis_apps", app],
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
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml"),
                *("run", f"{found.group()}/openapi.json", "--checks", "all"),
                *("--header", "Prefer: handling=strict", "--max-examples", str(max_examples)),
                *("--seed", "1", "--generation-database", "none", "--no-color", *flags),
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
