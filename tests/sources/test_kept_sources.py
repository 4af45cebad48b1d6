"""The file with the sources that are kept under a name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.app_process import environment

from tooli.errors import InputError, StateError, TemporaryError
from tooli.sources.kept_sources import (
    KeptSource,
    change_kept_sources,
    load_kept_sources,
    sources_path,
)
from tooli.sources.source_grammar import SourceOptions, parse_source


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tmp_path.chmod(0o700)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "TOOLI_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("APPDATA" if os.name == "nt" else "HOME", str(tmp_path))
    return tmp_path


def keep(name: str, text: str = "files:/tools", **options: object) -> KeptSource:
    source = parse_source(text, SourceOptions(**options)).replace(name=name)
    kept = KeptSource(name, source, "Tools.", ("a", "b"))
    change_kept_sources(lambda known: {**known, name: kept})
    return kept


def test_sources_are_kept() -> None:
    assert load_kept_sources() == {}
    first = keep("shop", "openapi:/a.json", headers=(("X-Key", "env:KEY"),), include=("a",))
    second = keep("desk", "mcp:npx -y 'a b'", trusted=True, auth=None)
    assert load_kept_sources() == {"shop": first, "desk": second}
    if os.name != "nt":
        assert Path(sources_path()).stat().st_mode & 0o777 == 0o600
    change_kept_sources(lambda known: None)
    assert list(load_kept_sources()) == ["desk", "shop"]


def test_processes_that_keep_sources_at_the_same_time(home: Path) -> None:
    code = (
        "import sys; from tooli.sources.kept_sources import *;"
        "from tooli.sources.source_grammar import parse_source;"
        "names = [f'{sys.argv[1]}-{i}' for i in range(20)];"
        "[change_kept_sources(lambda known: {**known, n: KeptSource(n, parse_source('files:/x'))})"
        " for n in names]"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, name], env=environment(HOME=str(home)), cwd=home
        )
        for name in "abc"
    ]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    assert len(load_kept_sources()) == 60


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"version": 2, "sources": {}}', "version is 2"),
        ('{"version": 1}', "no object `sources`"),
        ('{"version": 1, "sources": {"a": {}}}', "'a' has no source"),
        ('{"version": 1, "sources": {"a": {"source": "mcp:"}}}', "does not name"),
        ('{"version": 1, "sources": {"a": {"source": "files:/x", "options": []}}}', "an object"),
        (
            '{"version": 1, "sources": {"a": {"source": "files:/x", "options": {"b": 1}}}}',
            "no option 'b'",
        ),
        (
            '{"version": 1, "sources": {"a": {"source": "files:/x", "options": {"include": "a"}}}}',
            "'include' has an invalid value",
        ),
        (
            '{"version": 1, "sources": {"a": {"source": "mcp:x", "options": {"env": [["a"]]}}}}',
            "'env' has an invalid value",
        ),
        (
            '{"version": 1, "sources": {"a": {"source": "mcp:x", "options": {"trusted": "no"}}}}',
            "'trusted' has an invalid value",
        ),
        (
            '{"version": 1, "sources": {"a": {"source": "openapi:x", "options": {"auth": 1}}}}',
            "'auth' has an invalid value",
        ),
    ],
)
def test_file_that_is_not_valid(text: str, problem: str) -> None:
    keep("shop")
    Path(sources_path()).write_text(text)
    with pytest.raises(StateError, match=problem) as caught:
        load_kept_sources()
    assert sources_path() in caught.value.message
    with pytest.raises(StateError):
        change_kept_sources(lambda known: {})
    assert Path(sources_path()).read_text() == text


def test_file_that_is_too_large_or_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    keep("shop")
    monkeypatch.setattr("tooli.sources.kept_sources.MAX_FILE_BYTES", 10)
    with pytest.raises(StateError, match="too large"):
        load_kept_sources()
    Path(sources_path()).unlink()
    Path(sources_path()).mkdir()
    with pytest.raises(StateError, match="regular file"):
        load_kept_sources()


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_file_that_others_can_write() -> None:
    keep("shop")
    Path(sources_path()).chmod(0o666)
    with pytest.raises(StateError, match="every user can write"):
        load_kept_sources()


def test_file_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = keep("shop")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tooli.sources.kept_sources.write_atomically", fail)
    with pytest.raises(TemporaryError, match="No space left"):
        change_kept_sources(lambda known: {})
    assert load_kept_sources() == {"shop": kept}


def test_home_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "relative")
    monkeypatch.delenv("APPDATA", raising=False)
    with pytest.raises(InputError, match="settings folder"):
        sources_path()


def test_file_has_no_empty_fields() -> None:
    keep("shop")
    data = json.loads(Path(sources_path()).read_text())
    assert data["sources"]["shop"] == {
        "source": "files:/tools",
        "description": "Tools.",
        "tools": ["a", "b"],
    }
