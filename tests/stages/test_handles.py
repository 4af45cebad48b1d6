"""The stages `secret_tracking`, `secret_reading` and `handles`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, SecretStr
from tests.stages.stage_calls import make_call, pass_through

from tooli import InputError, Output, SecretInput, StdinOr, Tooli
from tooli.annotations import Destructive
from tooli.core.call import Ok
from tooli.core.call_secrets import call_secrets
from tooli.schema import Converted, RawText
from tooli.stages.handles import track_secrets
from tooli.testing import invoke


class Report(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    target: Output
    password: SecretInput[str]


class TestSecretTracking:
    def test_secrets_of_a_call_are_collected(self) -> None:
        call = make_call().replace(secrets=[])
        steps = track_secrets(call)
        next(steps)
        assert call_secrets.get() is call.secrets
        with pytest.raises(StopIteration):
            steps.send(Ok(None))
        assert call_secrets.get() is not call.secrets

    def test_secret_default_is_collected(self) -> None:
        default = SecretInput("hunter22")

        def login(password: SecretInput = default) -> None: ...

        call = make_call(login).replace(secrets=[])
        pass_through(track_secrets, call)
        assert call.secrets == [default]

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (RawText(["s1", "s2"]), {"s1", "s2"}),
            (RawText(["s1"], is_cli_text=False), {"s1"}),
            (["s1", b"s2", None, 3], {"s1", b"s2"}),
            (Converted(["s1", SecretStr("s2")]), {"s1", "s2"}),
            (None, set()),
        ],
    )
    def test_text_of_a_secret_is_collected_before_it_is_converted(
        self, value: object, expected: set[object]
    ) -> None:
        def login(keys: list[SecretStr], name: str = "ada") -> None: ...

        call = make_call(login, {"keys": value, "name": RawText(["ada"])}).replace(secrets=[])
        pass_through(track_secrets, call)
        assert {secret.reveal() for secret in call.secrets or ()} == expected

    @pytest.mark.parametrize(
        ("raw", "is_reported"),
        [
            (RawText(["hunter22"]), True),
            (RawText([], dotted={"a.b": ["x-hunter22"]}), True),
            (RawText(["hunter22"], is_cli_text=False), False),
            (RawText(["env:KEY"]), False),
        ],
    )
    def test_secret_on_the_command_line_is_a_warning(self, raw: RawText, is_reported: bool) -> None:
        def login(password: SecretInput, user: dict[str, SecretStr] | None = None) -> None: ...

        name = "user" if raw.dotted else "password"
        call = make_call(login, {name: raw}).replace(secrets=[SecretInput("hunter22")])
        pass_through(track_secrets, call)
        assert [name in warning for warning in call.warnings] == [True] * is_reported
        assert all("hunter22" not in warning for warning in call.warnings)

    def test_call_without_a_list_of_secrets_is_unchanged(self) -> None:
        call = make_call()
        assert pass_through(track_secrets, call, Ok(1)) == (call, Ok(1))


class TestSecretReading:
    def test_secret_is_read_before_the_call_is_checked(self, tmp_path: Path) -> None:
        app = Tooli("vault")

        @app.command(annotations=Destructive)
        def push(key: SecretInput[str], note: str) -> str:
            return note

        (tmp_path / "key").write_text("hush-1234")
        for reference in (f"@{tmp_path / 'key'}", "-"):
            argv = (reference, "with hush-1234", "--dry-run", "--json")
            plan = invoke(app, *argv, input="hush-1234").envelope["result"]
            assert plan["arguments"]["note"] == "with ***"

    def test_unreadable_secret_is_an_input_error(self, tmp_path: Path) -> None:
        app = Tooli("vault")

        @app.command(annotations=Destructive)
        def push(key: SecretInput[str]) -> None: ...

        (tmp_path / "key").write_bytes(b"\xff\xfe")
        answer = invoke(app, f"@{tmp_path / 'key'}", "--json")
        assert (answer.exit_code, answer.envelope["error"]["code"]) == (2, "E1003")


@pytest.fixture
def app() -> Tooli:
    app = Tooli("a")

    @app.command()
    def size(source: StdinOr[str]) -> int:
        return len(source)

    @app.command()
    async def asize(source: StdinOr[str]) -> int:
        return len(source)

    @app.command()
    async def chars(source: StdinOr[str]) -> AsyncIterator[str]:
        for char in source:
            yield char

    @app.command()
    def sizes(sources: list[StdinOr[str]]) -> list[int]:
        return [len(source) for source in sources]

    @app.command()
    def login(password: SecretInput) -> int:
        return len(password.reveal())

    @app.command()
    def save(path: Output, fail: bool = False) -> None:
        path.write_text("new")
        if fail:
            raise ValueError("no")

    return app


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "in.txt"
    path.write_text("hello")
    return str(path)


class TestHandles:
    @pytest.mark.parametrize("tool", ["size", "asize"])
    def test_function_receives_the_content(self, tool: str, app: Tooli, file: str) -> None:
        assert app.call(tool, source=file).unwrap() == 5

    @pytest.mark.parametrize("tool", ["size", "asize"])
    def test_function_receives_the_content_on_an_event_loop(
        self, tool: str, app: Tooli, file: str
    ) -> None:
        assert asyncio.run(app.acall(tool, source=file)).unwrap() == 5

    def test_stream_and_astream_receive_the_content(self, app: Tooli, file: str) -> None:
        async def collect() -> list[Any]:
            return [item async for item in app.astream("chars", source=file)]

        assert list(app.stream("chars", source=file)) == list("hello")
        assert asyncio.run(collect()) == list("hello")

    def test_every_input_of_a_list_is_loaded(self, app: Tooli, file: str) -> None:
        assert app.call("sizes", sources=[file, file]).unwrap() == [5, 5]

    def test_function_receives_a_loaded_secret(self, app: Tooli, file: str) -> None:
        assert app.call("login", password="hunter22").unwrap() == 8

    @pytest.mark.parametrize("tool", ["size", "asize"])
    def test_unreadable_input_fails_before_the_function_starts(
        self, tool: str, app: Tooli, tmp_path: Path
    ) -> None:
        result = app.call(tool, source=str(tmp_path / "missing"))
        assert not result.ok
        with pytest.raises(InputError):
            result.unwrap()

    def test_output_is_written_to_its_path(self, app: Tooli, tmp_path: Path) -> None:
        path = tmp_path / "out.txt"
        assert app.call("save", path=str(path)).ok
        assert path.read_text() == "new"

    @pytest.mark.parametrize("timeout", [None, 60], ids=["in process", "child process"])
    def test_handles_in_an_input_model_are_loaded_before_the_function_starts(
        self, tmp_path: Path, timeout: float | None
    ) -> None:
        app, started = Tooli("a"), tmp_path / "started"

        @app.command(input_model=Report, timeout=timeout)
        def write(report: Report) -> int:
            assert report.password.is_loaded
            started.touch(exist_ok=False)
            return report.target.write_text("x")

        app.command("other")(lambda: None)
        target = tmp_path / "out"
        argv = ["write", "--target", str(target), "--json", "--password"]
        assert invoke(app, *argv, "env:PW", env={"PW": "hush"}).result == 1
        assert target.read_text() == "x"
        started.unlink()
        assert not invoke(app, *argv, f"@{tmp_path}/missing").ok
        assert not started.exists(), "the secret is read before the function starts"

    def test_failed_call_keeps_the_old_output(self, app: Tooli, tmp_path: Path) -> None:
        path = tmp_path / "out.txt"
        path.write_text("old")
        assert not app.call("save", path=str(path), fail=True).ok
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]
