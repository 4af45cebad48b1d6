"""Requests of OpenAPIProvider, as openapi-core and prism judge them."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration import node
from tests.integration.frameworks import environment
from tests.integration.providers.openapi_examples import (
    app_of,
    calls_of,
    example_folder,
    read_examples,
)
from tests.providers.openapi.api_server import Answer, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.providers.openapi.api_server import Received

ORACLE = Path(__file__).with_name("openapi_oracle.py")
environment.REQUIREMENTS["openapi"] = ORACLE.with_name("requirements-openapi.txt")


@pytest.fixture
def upload(tmp_path: Path) -> str:
    file = tmp_path / "upload.png"
    file.write_bytes(b"\x89PNG")
    return str(file)


def validate(documents: dict[str, Any], requests: list[dict[str, Any]]) -> list[str | None]:
    """Return null, or the reason of its rejection, for each request."""
    given = json.dumps({"documents": documents, "requests": requests})
    command = [environment.python("openapi"), ORACLE]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def record(documents: dict[str, Any], upload: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Call every operation; return the requests, and the calls that sent none."""
    requests: list[dict[str, Any]] = []
    unsent: list[str] = []
    with serve() as api:
        api.answer = Answer({})
        for name, document in documents.items():
            app = app_of(document, api.url)
            for tool, arguments in calls_of(app, upload):
                count = len(api.requests)
                result = app.options(yes=True).call(tool.key, **arguments)
                if len(api.requests) == count:
                    unsent.append(f"{name} {tool.key}: {result.error and result.error.message}")
                    continue
                requests.append(describe(name, tool.key, api.last))
    return requests, unsent


def describe(document: str, tool: str, received: Received) -> dict[str, Any]:
    return {
        "document": document,
        "tool": tool,
        "method": received.method,
        "target": received.target,
        "headers": received.headers,
        "body": received.body.decode("latin-1"),
    }


def test_openapi_core_accepts_the_requests(upload: str) -> None:
    documents = {**read_examples("3.0"), **read_examples("3.1")}
    requests, unsent = record(documents, upload)
    assert len(requests) >= 610, unsent
    verdicts = validate(documents, requests)
    rejected = [
        f"{request['document']} {request['tool']} {verdict}"
        for request, verdict in zip(requests, verdicts, strict=True)
        if verdict is not None
    ]
    unexplained = [
        text for text in rejected if not any(re.search(reason, text) for reason in REJECTIONS)
    ]
    assert not unexplained
    assert len(requests) - len(rejected) >= 550


REJECTIONS = {
    r"circular": "the samples do not fill schemas that contain themselves",
    r"valid under each of|discriminat|could not be resolved": "a sample fits two alternatives",
    r"^3\.1/readme (guides|api-reference)": "a sample fits two alternatives",
    r"^3\.0/(polymorphism|schema-deprecated)": "a sample fits two alternatives",
    r"complex-nesting post-multischema": "a sample fits two alternatives",
    r"additional-properties post-post": "the document excludes the properties of its alternatives",
    r"OpenAPIValidationError": "the document is not valid",
    r"(parameters|encoding)-style .*\('\w+', '\w+'\)": "openapi-core does not read this style",
    r"parameters-style path\.paths-(matrix|label)": "openapi-core does not read this style",
    r"file-uploads|pet\.upload-file": "openapi-core compares the parts of a form as text",
    r"Authorization|owlbot-ai\.ask-owlbot": "a header that callers cannot set is a parameter",
}
"""Why openapi-core rejects some of the requests, by a pattern of the operation and the reason."""


# ------------------------------------------------------------------ prism

PRISM = "@stoplight/prism-cli@5.16.0"


@contextmanager
def prism(document: Path, tmp_path: Path) -> Iterator[str]:
    """Run prism, which answers every request that is not valid with an error."""
    package = node.install(PRISM) / "node_modules" / "@stoplight" / "prism-cli"
    command = [node.node(), package / "dist" / "index.js", "mock", "--errors", "-h", "127.0.0.1"]
    for attempt in range(5):
        log = tmp_path / f"prism-{attempt}.log"
        port = unused_port()
        with log.open("w") as output:
            process = subprocess.Popen(
                [*command, "-p", str(port), document], stdout=output, stderr=subprocess.STDOUT
            )
        try:
            if wait_for_prism(process, log):
                yield f"http://127.0.0.1:{port}"
                return
        finally:
            process.kill()
            process.wait()
    raise AssertionError(log.read_text())


def unused_port() -> int:
    """Return a port that is free now. Another process may take it: then prism ends."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


def wait_for_prism(process: subprocess.Popen[bytes], log: Path) -> bool:
    """Wait until prism listens; return False if it has ended."""
    for _ in range(6_000):
        if "Prism is listening" in log.read_text():
            return True
        if process.poll() is not None:
            return False
        sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("name", "count"),
    [("2.0/petstore", 20), ("3.0/complex-nesting", 5), ("3.1/train-travel", 7)],
)
def test_prism_accepts_the_requests(
    name: str, count: int, upload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version, _, stem = name.partition("/")
    monkeypatch.setenv("PRISM_TOKEN", "anything")
    file = example_folder() / version / "json" / f"{stem}.json"
    rejected: dict[str, str] = {}
    called: list[str] = []
    with prism(file, tmp_path) as url:
        app = app_of(read_examples(version)[name], url, auth="env:PRISM_TOKEN")
        for tool, arguments in calls_of(app, upload):
            result = app.options(yes=True).call(tool.key, **arguments)
            called.append(tool.key)
            if not result.ok and "prism/errors" in json.dumps(result.to_dict()):
                rejected[tool.key] = result.error.message
            assert result.ok or (result.error.details or {}).get("status"), result.error.message
    assert len(called) == count
    # Prism accepts no media type at all if a Swagger document does not declare one.
    assert [key for key in rejected if not key.startswith("user.create-")] == []
