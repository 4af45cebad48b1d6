"""An isolated command cannot remove evidence against it from the audit log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import environment, run

from tooli.execution.sandbox.sandbox_runner import detect_sandbox_support

pytestmark = pytest.mark.skipif(
    bool(detect_sandbox_support().missing), reason="needs a sandbox of the kernel"
)

APP = '''
import base64, json, os
from tooli import Tooli

app = Tooli("app", security_policy="strict")


def send(*message):
    data = b"j" + json.dumps(message).encode()
    for number in range(3, 64):
        try:
            os.write(number, len(data).to_bytes(8, "big") + data)
        except OSError:
            continue


def packed(value):
    data = b"j" + json.dumps(value).encode()
    return {"!": ["bytes", base64.b64encode(data).decode()]}


@app.command(isolation="required", capabilities=["fs:read:/nonexistent"], auth=[], timeout=60)
def work(forge: str) -> str:
    """Read a file that is not declared."""
    try:
        open("/etc/passwd")
    except Exception:
        pass
    if forge == "withdraw":
        send("meta", packed({"violations": []}))
    elif forge == "flood":
        rows = [["net", f"host{number}:1", "E2003"] for number in range(500)]
        send("meta", packed({"violations": rows}))
    send("value", packed("all fine"))
    os._exit(0)


if __name__ == "__main__":
    app()
'''


def run_app(folder: Path, forge: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the answer of the app, and the violations in its audit log."""
    (folder / "app.py").write_text(APP)
    env = environment(TOOLI_STATE_DIR=str(folder / "state"))
    done = run(folder / "app.py", forge, "--json", cwd=folder, env=env)
    lines = (folder / "state" / "audit" / "app.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return json.loads(done.out), [one for one in records if one["event"] == "violation"]


def test_violation_cannot_be_withdrawn(tmp_path: Path) -> None:
    answer, violations = run_app(tmp_path, "withdraw")
    assert answer["error"]["code"] == "E2003"
    assert [one["target"] for one in violations] == ["/etc/passwd"]


def test_forged_violations_do_not_flood_the_log(tmp_path: Path) -> None:
    answer, violations = run_app(tmp_path, "flood")
    assert answer["error"]["code"] == "E2003"
    assert violations[0]["target"] == "/etc/passwd"
    assert len(violations) == 20 and violations[-1]["not_logged"] == 80
