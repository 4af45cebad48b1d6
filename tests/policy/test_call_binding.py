"""The binding of a call: its parts, the state of its files, and its folder."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Any, cast

import pytest

from tooli import Output, SecretInput, StdinOr, Tooli
from tooli.core.call import PYTHON_CALLER, Call
from tooli.core.call_fingerprint import digest
from tooli.errors import ApprovalRequired
from tooli.pipeline import drivers
from tooli.policy import call_binding
from tooli.policy.call_binding import (
    CallBinding,
    UnreadableArgument,
    bind_call,
    changed_parts,
    read_file_state,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def keyed_digest(data: bytes) -> str:
    return digest(data, 16, b"key").hex()


app = Tooli("app", version="1.0")


@app.command()
def read(data: StdinOr[str]) -> None: ...


@app.command()
def paths(paths: list[Path]) -> None: ...


@app.command()
def write(out: Output) -> None: ...


@app.command()
def take(value: Any) -> None: ...


@app.command()
def login(password: SecretInput[str]) -> None: ...


def bind(name: str, *, must_be_stable: bool = True, **arguments: Any) -> CallBinding:
    tool = app.find(name)
    assert tool is not None
    found: list[Call] = []

    def keep(call: Call) -> Any:
        found.append(call)
        return (yield call)

    call = Call(tool.replace(fn=lambda **_: None), arguments, PYTHON_CALLER, [])
    drivers.run(call, (drivers.bind, keep))
    call = found[0].replace(tool=tool)
    return bind_call(call, keyed_digest, must_be_stable=must_be_stable)


def test_parts_name_what_has_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = bind("take", value=1), bind("take", value=2)
    assert changed_parts(one.parts, two.parts) == ["the arguments"]
    assert changed_parts(one.parts, bind("take", value=1).parts) == []
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    assert changed_parts(one.parts, bind("take", value=1).parts) == ["the working folder"]
    assert "the command" in changed_parts(one.parts, bind("paths", paths=[]).parts)


def test_deleted_working_folder_has_no_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    (folder / "sub").rmdir()
    assert bind("take", value=1).folder == ""


def test_digests_depend_on_the_key(folder: Path) -> None:
    (folder / "a").write_text("a")
    for digests in (bind("read", data="a").parts, bind("read", data="a").contents):
        assert digests
        assert all(len(value) == 32 for value in digests.values())


@pytest.mark.parametrize("name", ["read", "paths", "write"])
def test_files_are_compared_by_content(folder: Path, name: str) -> None:
    arguments: dict[str, Any] = {
        "read": {"data": "a"},
        "paths": {"paths": [Path("a")]},
        "write": {"out": "a"},
    }[name]
    (folder / "a").write_text("one")
    one = bind(name, **arguments)
    (folder / "a").write_text("two")
    two = bind(name, **arguments)
    assert one.parts == two.parts
    assert one.contents != two.contents
    (state,) = two.files[next(iter(arguments))]
    assert (state.path, state.kind, state.size) == (str(folder / "a"), "file", 3)
    assert state.beginning == "two"


def test_stdout_is_not_a_file() -> None:
    assert bind("write", out="-").files == {}


@pytest.mark.parametrize("limit", [2, 1 << 20])
def test_small_input_is_held(folder: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(call_binding, "MAX_HELD_BYTES", limit)
    (folder / "a").write_text("one")
    state, data = read_file_state("a", limit)
    assert state.size == 3
    assert data == (b"one" if limit > 3 else None)


def test_input_above_its_own_limit_is_not_held(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A held input is not checked again, so it would get around the limit."""
    from tooli import Input

    (folder / "a").write_text("one")
    monkeypatch.setenv("TOOLI_MAX_INPUT", "2")
    source = Input("a")
    tool = app.find("take")
    assert tool is not None
    call = Call(tool, {"value": source}, PYTHON_CALLER, [])
    bind_call(call, keyed_digest, must_be_stable=True)
    with pytest.raises(Exception, match="larger than the limit"):
        source.read_bytes()


def test_huge_file_is_compared_by_its_metadata(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_binding, "MAX_HASHED_BYTES", 2)
    (folder / "a").write_text("one")
    one, data = read_file_state("a", 100)
    assert data is None
    assert one.digest.startswith("not computed")
    (folder / "b").write_text("two")
    os.replace(folder / "b", folder / "a")
    assert read_file_state("a", 100)[0].digest != one.digest


def test_large_file_is_not_read_on_an_event_loop(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read() -> str:
        return read_file_state("a", 100)[0].digest

    monkeypatch.setattr(call_binding, "MAX_EVENT_LOOP_BYTES", 2)
    (folder / "a").write_text("one")
    assert asyncio.run(read()).startswith("not computed")
    assert not read_file_state("a", 100)[0].digest.startswith("not computed")


@pytest.mark.parametrize(
    ("path", "kind"), [("missing", "missing"), ("a/b", "missing"), ("a\0b", "unreadable")]
)
def test_other_states(folder: Path, path: str, kind: str) -> None:
    (folder / "a").touch()
    assert read_file_state(path, 0)[0].kind == kind


def test_folder_is_compared_by_the_names_of_its_entries(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sub").mkdir()
    states = [read_file_state("sub", 0)[0]]
    (folder / "sub" / "a").touch()
    states.append(read_file_state("sub", 0)[0])
    (folder / "sub" / "a").unlink()
    (folder / "sub" / "a").mkdir()
    states.append(read_file_state("sub", 0)[0])
    assert [state.kind for state in states] == ["folder"] * 3
    assert len({state.digest for state in states}) == 3
    monkeypatch.setattr(call_binding, "MAX_FOLDER_ENTRIES", 0)
    assert read_file_state("sub", 0)[0].kind == "unreadable"


@pytest.mark.parametrize("must_be_stable", [True, False])
def test_unreadable_argument_is_always_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, must_be_stable: bool
) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "a").touch()
    monkeypatch.setattr(call_binding, "MAX_FOLDER_ENTRIES", 0)
    with pytest.raises(UnreadableArgument, match="more than 0 entries"):
        bind("paths", must_be_stable=must_be_stable, paths=[Path("sub")])
    with pytest.raises(UnreadableArgument, match="null"):
        bind("paths", must_be_stable=must_be_stable, paths=[Path("a\0b")])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX files")
@pytest.mark.parametrize("path", ["fifo", "link", "/dev/null", "/proc/version"])
def test_special_files_are_not_opened(folder: Path, path: str) -> None:
    os.mkfifo(folder / "fifo")
    (folder / "link").symlink_to("fifo")
    assert read_file_state(path, 100) == (
        call_binding.FileState(os.path.realpath(path), "special"),
        None,
    )
    with pytest.raises(ApprovalRequired, match="not a file or folder"):
        bind("paths", paths=[Path(path)])
    assert bind("paths", must_be_stable=False, paths=[Path(path)]).files["paths"]


def test_unstable_values_are_refused_only_if_required() -> None:
    for value in (iter([1]), lambda: 0):
        with pytest.raises(ApprovalRequired, match="cannot be approved"):
            bind("take", value=value)
        assert bind("take", must_be_stable=False, value=value).parts


def test_url_and_stdin_are_refused_only_if_they_must_be_stable() -> None:
    with pytest.raises(ApprovalRequired, match="is a URL"):
        bind("read", data="https://example.invalid/a")
    with pytest.raises(ApprovalRequired, match="read from stdin"):
        bind("read", data="-")
    assert bind("read", must_be_stable=False, data="https://example.invalid/a").parts
    tool = app.find("login")
    assert tool is not None
    (param,) = tool.params
    secret = cast("Any", param.shape).parse("-", param, True)
    with pytest.raises(ApprovalRequired, match="read from stdin"):
        bind("login", password=secret)
    assert bind("login", must_be_stable=False, password=secret).parts


def test_file_that_is_replaced_by_a_pipe_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real_open = folder / "a", os.open
    path.write_text("text")

    def replace_and_open(name: str, *args: int, **kwargs: int) -> int:
        path.unlink()
        os.mkfifo(path)
        return real_open(name, *args, **kwargs)

    monkeypatch.setattr(os, "open", replace_and_open)
    state, content = call_binding.read_file_state(str(path), 100)
    assert (state.kind, content) == ("special", None)


def test_large_file_is_compared_by_its_whole_content(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_binding, "_CHUNK_BYTES", 2)
    (folder / "a").write_bytes(b"123456789")
    state, content = call_binding.read_file_state(str(folder / "a"), 3)
    assert content is None
    assert (state.size, state.digest) == (9, hashlib.sha256(b"123456789").hexdigest())
    assert call_binding.read_file_state(str(folder / "a"), 9)[1] == b"123456789"


def test_content_of_a_file_is_shown_only_if_requested(folder: Path) -> None:
    (folder / "a").write_text("text")
    state = call_binding.read_file_state(str(folder / "a"), 9)[0]
    assert state.to_json(with_content=False) == {"path": str(folder / "a"), "is": "file"}
    assert state.to_json(with_content=True)["bytes"] == 4
