"""What a call reports: artifacts in the answer and to the client, and progress for a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tooli import Context, SecretInput, Tooli
from tooli.core.call import Call, Caller, Options
from tooli.core.peer import Artifact, Peer
from tooli.pipeline.reports import MAX_ARTIFACTS, is_uri
from tooli.schema.tool_reader import read_tool


class ArtifactPeer(Peer):
    """Keeps the artifacts and the log entries of a call."""

    def __init__(self, receives_events: bool = True) -> None:
        self.receives_events = receives_events
        self.artifacts: list[Artifact] = []

    def artifact(self, artifact: Artifact) -> None:
        self.artifacts.append(artifact)


def context(peer: Peer | None = None, policy: str = "standard", **options: Any) -> Context:
    tool = read_tool(lambda: None, app="app", path=("make",), kwargs={})
    call = Call(tool, {}, Caller("cli"), [], Options(**options), policy, meta={}, peer=peer)
    return Context(call)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://example.org/a", True),
        ("books://1", True),
        ("urn:isbn:1", True),
        ("git+ssh://host/a", True),
        ("C:\\files\\a", False),
        ("a/b:c", False),
        ("1a:b", False),
        ("report.pdf", False),
        ("", False),
        (":a", False),
    ],
)
def test_uris_begin_with_a_scheme(text: str, expected: bool) -> None:
    assert is_uri(text) is expected


def test_path_of_an_artifact_becomes_a_uri(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    peer = ArtifactPeer()
    ctx = context(peer)
    ctx.artifact("a", "my report.pdf", mime_type="application/pdf")
    ctx.artifact("b", tmp_path / "b.txt")
    ctx.artifact("c", "https://example.org/c")
    expected = [
        Artifact("a", f"{tmp_path.as_uri()}/my%20report.pdf", "application/pdf"),
        Artifact("b", f"{tmp_path.as_uri()}/b.txt"),
        Artifact("c", "https://example.org/c"),
    ]
    assert peer.artifacts == expected
    assert ctx._call.meta == {"artifacts": [artifact.to_dict() for artifact in expected]}


def test_artifacts_of_an_answer_are_limited() -> None:
    peer = ArtifactPeer()
    ctx = context(peer)
    for n in range(MAX_ARTIFACTS + 2):
        ctx.artifact("x" * 300, f"https://example.org/{n}/{'y' * 3000}")
    assert len(peer.artifacts) == MAX_ARTIFACTS + 2
    assert {(len(found.name), len(found.uri)) for found in peer.artifacts} == {(200, 2000)}
    assert ctx._call.meta is not None
    assert len(ctx._call.meta["artifacts"]) == MAX_ARTIFACTS
    assert ctx._call.warnings == [f"meta.artifacts has the first {MAX_ARTIFACTS} artifacts only"]


def test_secrets_and_control_characters_are_removed(monkeypatch: Any) -> None:
    app = Tooli("app")

    @app.command()
    def make(key: SecretInput[str], ctx: Context) -> None:
        ctx.artifact(f"\x1b[31m{key.reveal()}", f"https://example.org/?k={key.reveal()}")
        ctx.artifact("file", Path(f"/tmp/{key.reveal()}"))

    monkeypatch.setenv("KEY", "hunter2-hunter2")
    artifacts = app.call("make", key="env:KEY").meta["artifacts"]
    assert "hunter2" not in str(artifacts)
    assert "\x1b" not in str(artifacts)
    assert [artifact["uri"].partition("/")[0] for artifact in artifacts] == ["https:", ""]


def test_person_sees_artifacts_on_stderr(capsys: Any) -> None:
    context().artifact("page", "https://example.org")
    assert capsys.readouterr() == ("", "page: https://example.org\n")
    context(is_machine_mode=True).artifact("page", "https://example.org")
    context(quiet=True).artifact("page", "https://example.org")
    assert capsys.readouterr() == ("", "")


def test_peer_that_only_answers_questions_gets_no_events(capsys: Any) -> None:
    peer = ArtifactPeer(receives_events=False)
    ctx = context(peer, interactive=True)
    ctx.artifact("page", "https://example.org")
    ctx.log("careful", level=0)
    ctx.report(1, 2, "half")
    assert peer.artifacts == []
    assert capsys.readouterr().err == "page: https://example.org\ncareful\n50%  half\n"


def test_person_sees_progress_when_it_changes(capsys: Any) -> None:
    ctx = context(interactive=True)
    for done in range(101):
        ctx.report(done, 100, "loading")
    ctx.report(1)
    ctx.report(2, message="waiting")
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["0%  loading", "10%  loading"]
    assert lines[-2:] == ["100%  loading", "waiting"]
    assert len(lines) == 12
    context(interactive=True, quiet=True).report(1, 2)
    context().report(1, 2)
    assert capsys.readouterr().err == ""


def test_artifact_is_a_log_message_by_default() -> None:
    class LogPeer(Peer):
        def __init__(self) -> None:
            self.logged: list[tuple[str, object]] = []

        def log(self, level: str, data: object) -> None:
            self.logged.append((level, data))

    peer = LogPeer()
    context(peer).artifact("page", "https://example.org")
    data = {"type": "artifact", "name": "page", "uri": "https://example.org"}
    assert peer.logged == [("info", data)]
