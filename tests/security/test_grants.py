"""Attacks on approvals: what runs must be exactly what the human agreed to."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest
from tests.integration.app_process import environment, read_envelope, run
from tests.security.approval_calls import Person, error_of, request_approval, run_call

from tooli import (
    Context,
    Input,
    Output,
    SecretInput,
    StdinOr,
    Tooli,
    dry_run_support,
    record_dry_action,
)
from tooli.annotations import Destructive
from tooli.core.call import Call, Caller, Failed, Ok, Options
from tooli.core.options import OPTIONS, Option
from tooli.pipeline import drivers
from tooli.policy import call_binding
from tooli.policy.call_binding import bind_call, bound_options
from tooli.policy.call_display import format_lines
from tooli.records.call_options import ResultOptions
from tooli.storage.approval_store import ApprovalStore
from tooli.testing import invoke

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


pytestmark = pytest.mark.usefixtures("folder")


class Payment(pydantic.BaseModel):
    to: str
    amount: float = pydantic.Field(1.0, exclude=True)
    note: str = ""

    @pydantic.field_serializer("note")
    def mask(self, value: str) -> str:
        return "***"


class Guarded:
    """An app whose commands need an approval and record the values that they received."""

    def __init__(self, name: str = "bank", **settings: Any) -> None:
        self.app = Tooli(name, version="1.0", **settings)
        self.ran: list[Any] = []
        self.stock = ["a"]
        command = self.app.command

        @command(requires_approval=True)
        def load(data: StdinOr[str]) -> None:
            self.ran.append(data)

        @command(requires_approval=True)
        def copy(data: StdinOr[Path]) -> None:
            assert isinstance(data, Input)
            self.ran.append(data.read_bytes())

        @command(requires_approval=True)
        def merge(data: list[StdinOr[str]]) -> None:
            self.ran.append(data)

        @command(requires_approval=True)
        def remove(path: Path) -> None:
            self.ran.append(path)

        @command(requires_approval=True)
        def write(out: Output) -> None:
            out.write_text("new")
            self.ran.append(out.target)

        @command(requires_approval=True)
        def pay(payment: Payment) -> None:
            self.ran.append(payment)

        @command(requires_approval=True)
        def any_value(value: Any) -> None:
            self.ran.append(value)

        @command(requires_approval=True)
        def unlock(pin: SecretInput[str]) -> None:
            self.ran.append(pin.reveal())

        @command(requires_approval=True)
        @dry_run_support
        def sell(items: list[str]) -> None:
            is_dry = [record_dry_action("sell", item) for item in [*items, *self.stock]]
            items.append("changed")
            if not any(is_dry):
                self.ran.append(items)

        @command(annotations=Destructive)
        def drop(path: Path) -> None:
            self.ran.append(path)

    def call(self, name: str, **arguments: Any) -> Any:
        return run_call(self.app, name, **arguments)

    def error(self, name: str, **arguments: Any) -> Any:
        return error_of(self.app, name, **arguments)

    def request(self, name: str, **arguments: Any) -> Any:
        """Call a command, and return the stored request for its approval."""
        return request_approval(self.app, name, **arguments)

    def grant(self, name: str, **arguments: Any) -> None:
        assert ApprovalStore().decide(self.request(name, **arguments), "granted")

    def ask(self, name: str, **arguments: Any) -> Any:
        """Return the question to the person and the digests of what the question shows."""
        error = self.error(name, person=True, **arguments)
        assert error.approval_text is not None
        assert error.approval_parts is not None
        return error


@pytest.fixture
def bank() -> Guarded:
    return Guarded()


# ------------------------------------------------------------------ options


@pytest.mark.parametrize("name", ["purge", "read"])
def test_options_that_reach_the_function_are_shown_and_bound(folder: Path, name: str) -> None:
    app, ran = Tooli("app"), []

    @app.command(requires_approval=True)
    def purge(ctx: Context) -> list[int]:
        ran.append(ctx.page.limit)
        return []

    @app.command(requires_approval=True)
    def read(lines: StdinOr[Iterator[str]]) -> None:
        ran.append(list(lines))

    (folder / "list").write_text("a\nb\0c\n")
    arguments = {"lines": "list"} if name == "read" else {}
    small = Options(nul=True) if name == "read" else Options(result_options=ResultOptions(limit=1))
    large = Options() if name == "read" else Options(result_options=ResultOptions(limit=900))
    assert run_call(app, name, options=small, **arguments).error.code == "E2101"
    (request,) = ApprovalStore().list_pending()
    shown = {"purge": ("--limit", 1), "read": ("--null", True)}[name]
    assert shown in request.arguments.items()
    assert ApprovalStore().decide(request, "granted")
    error = run_call(app, name, options=large, **arguments).error
    assert error.details["approval"]["changed"] == ["the options"]
    assert not ran
    assert isinstance(run_call(app, name, options=small, **arguments), Ok)


VALUES = {"flag": True, "count": 2, "number": 3, "seconds": 9.0, "token": "t", "list": "a"}
CALL_OPTIONS = [option for option in OPTIONS if option.target in ("options", "result_options")]


def _make_options(option: Option) -> Options:
    fields = {option.target_field: VALUES.get(option.kind, "a")}
    if option.target == "options":
        return Options(**fields)
    return Options(result_options=ResultOptions(**fields))


@pytest.mark.parametrize("option", CALL_OPTIONS, ids=lambda option: option.name)
@pytest.mark.parametrize("name", ["readable", "plain", "stream"])
def test_every_option_that_matters_is_bound(folder: Path, name: str, option: Option) -> None:
    app = Tooli("app")

    @app.command(requires_approval=True)
    def readable(ctx: Context) -> str:
        return str(ctx.options)

    @app.command(requires_approval=True)
    def plain() -> str:
        return "done"

    @app.command(requires_approval=True)
    def stream() -> Iterator[int]:
        yield 1

    if option.name == "dry_run":
        return  # a dry run needs no approval
    tool = app.find(name)
    assert tool is not None
    call = Call(tool, {}, Caller("mcp", "a"), [], _make_options(option))
    with_option, without = [
        bind_call(call.replace(options=options), lambda data: data.hex(), must_be_stable=True).parts
        for options in (call.options, Options())
    ]
    is_bound = name == "readable" or (
        name == "stream" if option.affects == "records" else bool(option.affects)
    )
    assert (with_option != without) == is_bound
    shown = {flag for part in bound_options(call).values() for flag in part}
    assert bool(shown) == is_bound


@pytest.mark.parametrize("variable", ["TOOLI_TIMEOUT", "TOOLI_VERBOSE", "TOOLI_QUIET"])
def test_setting_in_the_environment_is_bound(folder: Path, variable: str) -> None:
    app, ran = Tooli("app"), []

    @app.command(requires_approval=True)
    def purge(ctx: Context) -> None:
        ran.append(ctx.options)

    env = {"TOOLI_STATE_DIR": os.environ["TOOLI_STATE_DIR"]}
    assert invoke(app, "--json", env=env).envelope["error"]["code"] == "E2101"
    (request,) = ApprovalStore().list_pending()
    assert ApprovalStore().decide(request, "granted")
    error = invoke(app, "--json", env={**env, variable: "1"}).envelope["error"]
    assert error["details"]["approval"]["changed"] == ["the run options"]
    assert not ran
    assert invoke(app, "--json", env=env).envelope["ok"]


def test_size_of_the_caller_next_to_default_sizes(folder: Path) -> None:
    app = Tooli("app")

    @app.command(requires_approval=True)
    def stream() -> Iterator[int]:
        yield from range(9)

    sizes = ResultOptions(max_tokens=25_000, max_items=9, has_default_sizes=True)
    large, small = Options(result_options=sizes), Options(result_options=sizes.replace(max_items=1))
    assert run_call(app, "stream", options=large).error.code == "E2101"
    (request,) = ApprovalStore().list_pending()
    assert request.arguments["--max-items"] == 9
    assert ApprovalStore().decide(request, "granted")
    assert run_call(app, "stream", options=small).error.code == "E2101"


def test_plan_is_applied_with_other_run_options(folder: Path) -> None:
    app = Tooli("app")

    @app.command(annotations=Destructive)
    def purge(ctx: Context) -> str:
        return "done"

    plan = app.call("purge", dry_run=True, verbose=1).result
    options = {"yes": True, "timeout": 60, "idempotency_key": "k", "quiet": True}
    assert app.call("purge", apply=plan["token"], **options).ok


# ------------------------------------------------------------------ the content of inputs


@pytest.mark.parametrize("name", ["load", "copy", "merge", "remove"])
def test_rewritten_file_does_not_run(bank: Guarded, folder: Path, name: str) -> None:
    file = folder / "a.txt"
    file.write_text("harmless")
    before = file.stat()
    arguments: dict[str, Any] = {"path" if name == "remove" else "data": str(file)}
    if name == "merge":
        arguments = {"data": [str(file)]}
    bank.grant(name, **arguments)
    file.write_text("harmful!")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    error = bank.error(name, **arguments)
    assert error.code == "E2101"
    (changed,) = error.details["approval"]["changed"]
    assert changed.startswith("the content of")
    assert f"It was approved before, but {changed} changed since then." in error.message
    file.write_text("harmless")
    assert isinstance(bank.call(name, **arguments), Ok)
    assert len(bank.ran) == 1


@pytest.mark.parametrize("name", ["load", "copy", "merge"])
def test_function_gets_the_bytes_that_were_checked(
    bank: Guarded, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The file is rewritten between the check and the run."""
    file = folder / "a.txt"
    file.write_text("harmless")
    arguments: dict[str, Any] = {"data": [str(file)] if name == "merge" else str(file)}
    bank.grant(name, **arguments)
    read = call_binding.read_file_state

    def read_then_rewrite(*arguments: Any) -> Any:
        found = read(*arguments)
        file.write_text("harmful!")
        return found

    monkeypatch.setattr(call_binding, "read_file_state", read_then_rewrite)
    assert isinstance(bank.call(name, **arguments), Ok)
    assert bank.ran in (["harmless"], [b"harmless"], [["harmless"]])


def test_replaced_link_does_not_run(bank: Guarded, folder: Path) -> None:
    for name in ("one", "two"):
        (folder / name).write_text("same")
    (folder / "link").symlink_to("one")
    bank.grant("remove", path="link")
    (folder / "link").unlink()
    (folder / "link").symlink_to("two")
    assert bank.error("remove", path="link").code == "E2101"


def test_file_that_appears_does_not_run(bank: Guarded, folder: Path) -> None:
    bank.grant("write", out="new.txt")
    (folder / "new.txt").write_text("precious")
    assert bank.error("write", out="new.txt").code == "E2101"
    assert (folder / "new.txt").read_text() == "precious"


def test_new_entry_of_a_folder_does_not_run(bank: Guarded, folder: Path) -> None:
    (folder / "sub").mkdir()
    bank.grant("remove", path="sub")
    (folder / "sub" / "precious").touch()
    assert bank.error("remove", path="sub").code == "E2101"


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files")
@pytest.mark.parametrize("name", ["load", "copy", "remove"])
@pytest.mark.parametrize(
    "path", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/dev/zero", "fifo", "to_stdin"]
)
def test_streams_and_devices_cannot_be_approved(
    bank: Guarded, folder: Path, name: str, path: str
) -> None:
    os.mkfifo(folder / "fifo")
    (folder / "to_stdin").symlink_to("/dev/zero")
    field = "path" if name == "remove" else "data"
    error = bank.error(name, **{field: path})
    assert error.details is None or "approval" not in error.details
    assert ApprovalStore().list_pending() == []


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="needs /proc")
def test_files_of_the_kernel_cannot_be_approved(bank: Guarded) -> None:
    assert "cannot be approved" in bank.error("copy", data="/proc/self/environ").message


_LEASE_HOLDER = """
import fcntl, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
file = open(sys.argv[1], "r+b")
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def leased_file(folder: Path) -> Iterator[Path]:
    """A file with a lease of another process. An open call without blocking fails (EAGAIN)."""
    if not hasattr(fcntl, "F_SETLEASE"):
        pytest.skip("needs file leases")
    file = folder / "leased"
    file.write_text("harmless")
    argv = [sys.executable, "-c", _LEASE_HOLDER, str(file)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        if holder.stdout.readline() != b"ready\n":
            pytest.skip("the file system has no leases")
        try:
            yield file
        finally:
            holder.kill()


@pytest.mark.parametrize("name", ["load", "merge", "remove"])
def test_leased_file_cannot_be_approved(bank: Guarded, leased_file: Path, name: str) -> None:
    argument = {"load": "data", "merge": "data", "remove": "path"}[name]
    value = [str(leased_file)] if name == "merge" else str(leased_file)
    for person in (False, True):
        error = bank.error(name, person=person, **{argument: value})
        assert (error.code, error.field, error.approval_text) == ("E3000", argument, None)
        assert "cannot be read" in error.message
    assert ApprovalStore().list_pending() == []
    assert not bank.ran


def test_leased_file_cannot_be_confirmed_or_planned(bank: Guarded, leased_file: Path) -> None:
    error = bank.error("drop", person=True, path=str(leased_file))
    assert (error.code, error.approval_text) == ("E3000", None)
    planned = bank.app.call("drop", path=leased_file, dry_run=True)
    assert "token" not in planned.result
    assert "cannot be applied" in planned.meta["warnings"][0]


def test_plan_does_not_apply_to_a_file_that_becomes_unreadable(
    bank: Guarded, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "a").touch()
    token = bank.app.call("drop", path=folder / "sub", dry_run=True).result["token"]
    monkeypatch.setattr(call_binding, "MAX_FOLDER_ENTRIES", 0)
    applied = bank.app.call("drop", path=folder / "sub", apply=token, yes=True)
    assert applied.error.code == "E3000"
    assert not bank.ran


def test_urls_cannot_be_approved(bank: Guarded) -> None:
    error = bank.error("load", data="https://example.com/a.txt")
    assert "is a URL, and its content can change" in error.message


@pytest.mark.parametrize(
    "value", [iter([1]), (n for n in [1]), open(os.devnull), [open(os.devnull)], {"a": lambda: 0}]
)
def test_values_without_content_cannot_be_approved(bank: Guarded, value: Any) -> None:
    error = bank.error("any_value", value=value)
    assert "cannot be approved" in error.message
    assert ApprovalStore().list_pending() == []


# ------------------------------------------------------------------ the folder


def test_grant_is_bound_to_the_folder(
    bank: Guarded, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "x").write_text("same")
    monkeypatch.chdir(folder / "a")
    bank.grant("any_value", value="x")
    monkeypatch.chdir(folder / "b")
    error = bank.error("any_value", value="x")
    assert error.details["approval"]["changed"] == ["the working folder"]
    assert bank.ran == []


def test_grant_is_bound_to_the_folder_between_processes(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(
        "from tooli import Tooli\n"
        "app = Tooli('app')\n"
        "@app.command(requires_approval=True)\n"
        "def wipe(name: str) -> str:\n"
        "    return name\n"
        "@app.command()\n"
        "def other() -> None: ...\n"
        "app()\n"
    )
    env = environment(TOOLI_STATE_DIR=str(tmp_path / "state"), TOOLI_CONFIG="off")
    folders = [tmp_path / "one", tmp_path / "two"]
    for one in folders:
        one.mkdir()

    def wipe(folder: Path) -> Any:
        return read_envelope(run(app, "wipe", "x", "--json", env=env, cwd=folder).out)

    assert wipe(folders[0])["error"]["code"] == "E2101"
    (request,) = ApprovalStore().list_pending("app")
    assert request.folder == os.path.realpath(folders[0])
    assert ApprovalStore().decide(request, "granted")
    assert wipe(folders[1])["error"]["details"]["approval"]["changed"] == ["the working folder"]
    assert wipe(folders[0])["result"] == "x"


# ------------------------------------------------------------------ values


@pytest.mark.parametrize(
    ("granted", "run"),
    [
        (None, float("1e999")),
        (float("inf"), float("-inf")),
        (float("nan"), None),
        (0.0, -0.0),
        (1, True),
        (1, 1.0),
        ("1", 1),
        (b"\xff", "/w=="),
        ("a", Path("a")),
        ([1], (1,)),
        ([[[1]]], [[[2]]]),
    ],
)
def test_similar_values_are_different_calls(bank: Guarded, granted: Any, run: Any) -> None:
    bank.grant("any_value", value=granted)
    assert bank.error("any_value", value=run).code == "E2101"
    assert isinstance(bank.call("any_value", value=granted), Ok)


def test_value_that_is_too_deep_to_be_shown_is_refused(bank: Guarded) -> None:
    value: list[Any] = [1]
    for _ in range(200):
        value = [value]
    assert bank.error("any_value", value=value).code == "E1034"


@pytest.mark.parametrize("change", [{"amount": 1e6}, {"note": "other"}, {"amount": 1.0}])
def test_hidden_fields_of_a_model_matter(bank: Guarded, change: dict[str, Any]) -> None:
    bank.grant("pay", payment={"to": "ann"})
    assert bank.error("pay", payment={"to": "ann", **change}).code == "E2101"
    assert isinstance(bank.call("pay", payment={"to": "ann"}), Ok)


def test_secret_is_bound_by_its_value(bank: Guarded) -> None:
    # A short number could be part of a digest or of a time by chance.
    bank.grant("unlock", pin="12349876-5432")
    assert bank.error("unlock", pin="12349876-5433").code == "E2101"
    stored = b"".join([file.read_bytes() for file in _state_files()])
    assert b"12349876-5432" not in stored


def _state_files() -> list[Path]:
    state = Path(os.environ["TOOLI_STATE_DIR"])
    return [file for file in state.rglob("*") if file.is_file()]


# ------------------------------------------------------------------ what the human is shown


def test_human_is_shown_folder_path_digest_and_beginning(bank: Guarded, folder: Path) -> None:
    content = "one\x1b[2J\u202e two".encode()
    (folder / "a.txt").write_bytes(content)
    request = bank.request("load", data="a.txt")
    assert request.folder == str(folder)
    (shown,) = request.files["data"]
    assert shown == {
        "path": str(folder / "a.txt"),
        "bytes": 14,
        "sha256": hashlib.sha256(content).hexdigest(),
        "begins": "one\x1b[2J\u202e two",
    }
    lines = format_lines(
        request.arguments, request.plan, folder=request.folder, files=request.files
    )
    assert '        begins: "one\\u001b[2J\\u202e two"' in lines


def test_human_is_shown_hidden_and_unusual_values(bank: Guarded) -> None:
    request = bank.request("pay", payment={"to": "ann", "amount": 5})
    assert request.arguments["payment"] == {
        "to": "ann",
        "amount": 5.0,
        "note": "",
    }
    request = bank.request("any_value", value=[float("inf"), b"a", None])
    assert request.arguments["value"] == ["inf", "bytes b'a'", None]


def test_remote_client_learns_nothing_about_the_content_of_a_file(folder: Path) -> None:
    bank = Guarded()
    (folder / "a.txt").write_text("content")
    tool = bank.app.find("load")
    assert tool is not None
    texts: list[str] = []
    for address in (None, "10.0.0.1"):
        caller = Caller("mcp", "agent", address=address)
        call = Call(tool, {"data": "a.txt"}, caller, [], peer=Person())
        outcome = drivers.run(*bank.app.prepare(call))
        assert isinstance(outcome, Failed)
        texts.append(outcome.error.approval_text or "")
    assert "content" in texts[0]
    assert f'path: "{folder / "a.txt"}"' in texts[1]
    assert not any(word in texts[1] for word in ("content", "sha256", "bytes"))


# ------------------------------------------------------------------ a "yes" of a person


def test_yes_runs_what_was_shown(bank: Guarded, folder: Path) -> None:
    (folder / "a.txt").write_text("one")
    parts = bank.ask("load", data="a.txt").approval_parts
    assert isinstance(bank.call("load", parts=parts, data="a.txt"), Ok)
    assert bank.ran == ["one"]


@pytest.mark.parametrize("name", ["load", "drop"])
def test_yes_does_not_apply_to_a_rewritten_file(bank: Guarded, folder: Path, name: str) -> None:
    (folder / "a.txt").write_text("one")
    arguments = {"data" if name == "load" else "path": "a.txt"}
    parts = bank.ask(name, **arguments).approval_parts
    (folder / "a.txt").write_text("two")
    error = bank.error(name, parts=parts, **arguments)
    assert error.code == "E3053"
    assert "the content of" in error.message
    assert bank.ran == []


def test_yes_does_not_apply_to_another_plan(bank: Guarded) -> None:
    parts = bank.ask("sell", items=["x"]).approval_parts
    bank.stock.append("b")
    error = bank.error("sell", parts=parts, items=["x"])
    assert (error.code, error.details["changed"]) == ("E3053", ["the plan"])
    assert bank.ran == []


def test_yes_without_a_question_does_not_apply(bank: Guarded) -> None:
    assert bank.error("any_value", parts={}, value=1).code == "E3053"


def test_yes_to_one_call_does_not_apply_to_another(bank: Guarded) -> None:
    parts = bank.ask("any_value", value=1).approval_parts
    assert bank.error("any_value", parts=parts, value=2).code == "E3053"
    assert bank.error("sell", parts=parts, items=[]).code == "E3053"


def test_dry_run_does_not_change_the_arguments(bank: Guarded) -> None:
    bank.grant("sell", items=["x"])
    assert isinstance(bank.call("sell", items=["x"]), Ok)
    assert bank.ran == [["x", "changed"]]


# ------------------------------------------------------------------ other apps and versions


def test_grant_does_not_apply_to_another_app(bank: Guarded) -> None:
    bank.grant("any_value", value=1)
    assert Guarded("other").error("any_value", value=1).code == "E2101"


def test_grant_does_not_apply_to_another_app_with_the_same_name(bank: Guarded) -> None:
    bank.grant("any_value", value=1)
    impostor = Guarded()
    app = Tooli("bank", version="1.0")
    app.command("other")(lambda: None)
    app.command("any_value", requires_approval=True)(lambda value: impostor.ran.append(value))
    impostor.app = app
    assert impostor.error("any_value", value="1").code == "E2101"
    assert impostor.ran == []


def test_grant_does_not_apply_to_another_version(bank: Guarded) -> None:
    bank.grant("any_value", value=1)
    newer = Guarded()
    newer.app._state.version = "2.0"
    error = newer.error("any_value", value=1)
    assert error.details["approval"]["changed"] == ["the version of the command"]


# ------------------------------------------------------------------ plan tokens


def _plan_token(bank: Guarded, **arguments: Any) -> str:
    result = bank.app.call("drop", dry_run=True, **arguments).result
    return str(result["token"])


def _digests(token: str) -> bytes:
    """Return what a token contains besides expiry time, nonce and signature."""
    data = base64.urlsafe_b64decode(token[1:] + "=" * (-len(token[1:]) % 4))
    return data[13:-16]


def test_argument_cannot_be_found_from_a_plan_token(
    bank: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attacker who knows everything but the key compares the digests of all PINs."""
    token = _digests(_plan_token(bank, path="1234"))
    assert token == _digests(_plan_token(bank, path="1234"))
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "attacker"))
    guess = _digests(_plan_token(bank, path="1234"))
    pieces = [token[i : i + 4] for i in range(len(token) - 3)]
    assert not [piece for piece in pieces if piece in guess]


def test_plan_token_is_bound_to_app_user_folder_and_file(
    bank: Guarded, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a").write_text("one")
    token = _plan_token(bank, path="a")

    def apply(app: Guarded) -> str | None:
        error = app.app.call("drop", path="a", apply=token, yes=True).error
        return None if error is None else error.code

    assert apply(Guarded("other")) == "E1051"
    (folder / "a").write_text("two")
    assert apply(bank) == "E3053"
    (folder / "a").write_text("one")
    with monkeypatch.context() as elsewhere:
        elsewhere.chdir(tmp_path)
        assert apply(bank) == "E1051"
    with monkeypatch.context() as another_user:
        another_user.setenv("TOOLI_STATE_DIR", str(tmp_path / "other"))
        assert apply(bank) == "E1051"
    assert bank.ran == []
    assert apply(bank) is None
    assert apply(bank) == "E1051"
    assert len(bank.ran) == 1


@pytest.mark.parametrize(
    "change", [{"amount": 5.0}, {"note": "other"}, {"to": "bob"}], ids=["excluded", "masked", "to"]
)
def test_idempotency_key_covers_hidden_fields(change: dict[str, Any]) -> None:
    app = Tooli("app")
    app.command("other")(lambda: None)

    @app.command()
    def pay(payment: Payment) -> float:
        return payment.amount

    first = app.call("pay", payment={"to": "ann"}, idempotency_key="k")
    assert first.result == 1.0
    assert app.call("pay", payment={"to": "ann"}, idempotency_key="k").result == 1.0
    other = app.call("pay", payment={"to": "ann", **change}, idempotency_key="k")
    assert other.error is not None
    assert other.error.code == "E3050"
