"""The stages that answer a dry run with a plan and apply the plan."""

from __future__ import annotations

import pathlib
from pathlib import Path

import pytest
from tests.stages.plan_app import ALL, KINDS, make_app

from tooli import Context, Tooli, dry_run_support, record_dry_action
from tooli.annotations import Destructive, Idempotent, ReadOnly
from tooli.core.call import Call, Caller, Failed, Ok, Options
from tooli.core.peer import InputRequired, Peer
from tooli.errors import StateError
from tooli.pipeline.drivers import run
from tooli.pipeline.dry_run_recorder import digest_state
from tooli.stages import plans
from tooli.testing import Case, assert_parity
from tooli.testing.app_interfaces import interfaces


class TestDryRun:
    def test_dry_run_without_support_returns_a_declared_plan(self) -> None:
        app = Tooli("files")
        ran = []

        @app.command(annotations=Destructive | Idempotent)
        def delete(path: pathlib.Path, depth: float = 3):
            ran.append(path)

        result = app.call("delete", path="a", dry_run=True)
        plan = result.to_dict()["result"]
        assert plan.pop("token")[:1] == "p"
        assert plan == {
            "tool": "files.delete",
            "arguments": {"path": "a", "depth": 3.0},
            "effects": ["idempotent", "destructive"],
            "basis": "declared",
        }
        assert result.meta["dry_run"] is True
        assert not ran

    def test_invalid_arguments_are_rejected_in_a_dry_run(self) -> None:
        app = Tooli("files")
        app.command("count")(lambda n=1: n)
        assert app.call("count", n="x", dry_run=True).error.code == "E1003"


# ------------------------------------------------------------------ apply plan


INTERFACES = [interface.name for interface in interfaces(Tooli("none"))]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "tooli"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        path.write_text(path.name)
    return [str(path) for path in paths]


def send(app: Tooli, interface: str, tool: str, files: list[str], **options) -> dict:
    case = Case(tool, {"files": files}, options)
    return next(one for one in interfaces(app) if one.name == interface).send_case(case).envelope


def plan_in(envelope: dict) -> dict:
    assert envelope["ok"], envelope
    result = envelope["result"]
    return result[0] if isinstance(result, list) else result


def are_deleted(files: list[str]) -> list[bool]:
    return [not Path(file).exists() for file in files]


# ------------------------------------------------------------------ dry runs


@pytest.mark.parametrize("tool", ALL)
def test_yes_and_dry_run_delete_nothing_on_any_interface(tool: str, files: list[str]) -> None:
    found = assert_parity(make_app(), Case(tool, {"files": files}, {"yes": True, "dry_run": True}))
    plan = found["result"]
    assert found["meta"]["dry_run"] is True
    assert are_deleted(files) == [False, False]
    assert plan["tool"] == f"shredder.{tool}"
    assert plan["arguments"] == {"files": files}
    assert plan["effects"] == ["destructive"]
    if tool == "wipe":
        assert plan["basis"] == "declared"
        assert "actions" not in plan
        return
    assert plan["basis"] == "dry_run"
    assert [(one["action"], one["target"]) for one in plan["actions"]] == [
        ("delete", files[0]),
        ("delete", files[1]),
    ]
    assert plan["actions"][0]["details"] == {"size": 3}
    assert plan["actions"][0]["state"] != plan["actions"][1]["state"]
    assert plan["state"]


@pytest.mark.parametrize("policy", ["off", "standard", "strict"])
def test_dry_run_deletes_nothing_under_every_policy(policy: str, files: list[str]) -> None:
    app = make_app(security_policy=policy)
    found = app.call("delete", files=files, yes=True, dry_run=True)
    assert found.result["basis"] == "dry_run"
    assert are_deleted(files) == [False, False]


def test_result_options_do_not_apply_to_a_plan(files: list[str]) -> None:
    app = make_app()
    found = app.call("delete-stream", files=files, dry_run=True, limit=1, detailed=True)
    assert len(found.result["actions"]) == 2
    assert "page" not in found.meta


def test_failed_dry_run_is_a_failure(files: list[str]) -> None:
    Path(files[0]).unlink()
    found = make_app().call("delete", files=files, dry_run=True)
    assert found.error.code == "E3010"
    assert are_deleted(files) == [True, False]


def test_nested_calls_are_part_of_a_dry_run(files: list[str]) -> None:
    app = make_app()

    @app.command(annotations=Destructive)
    @dry_run_support
    def tidy() -> int:
        assert app.call("look").result == "seen"
        app.options(yes=True).call("delete", files=files[:1])
        app.options(yes=True).call("wipe", files=files[1:])
        return 1

    @app.command(annotations=ReadOnly)
    def look() -> str:
        return "seen"

    plan = app.call("tidy", dry_run=True).result
    assert are_deleted(files) == [False, False]
    assert [(one["action"], one["target"]) for one in plan["actions"]] == [
        ("delete", files[0]),
        ("call", "shredder.wipe"),
    ]
    assert app.call("tidy", apply=plan["token"], yes=True).ok
    assert are_deleted(files) == [True, True]


# ------------------------------------------------------------------ applying


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("tool", ALL)
def test_a_plan_is_applied_once(tool: str, interface: str, files: list[str]) -> None:
    app = make_app()
    token = plan_in(send(app, interface, tool, files, dry_run=True))["token"]
    refused = send(app, interface, tool, files, apply=token)
    assert refused["error"]["code"] == "E1010", "a plan token is not a confirmation"
    assert are_deleted(files) == [False, False]
    assert send(app, interface, tool, files, apply=token, yes=True)["ok"]
    assert are_deleted(files) == [True, True]
    for file in files:
        Path(file).write_text(Path(file).name)
    second = send(app, interface, tool, files, apply=token, yes=True)
    assert second["error"]["code"] == "E1051"
    assert "used before" in second["error"]["message"]
    assert are_deleted(files) == [False, False]


@pytest.mark.parametrize(
    "interface", [one.name for one in interfaces(Tooli("none")) if not one.streams]
)
@pytest.mark.parametrize("tool", KINDS)
def test_the_answer_has_the_states_before_and_after(
    tool: str, interface: str, files: list[str]
) -> None:
    app = make_app()
    plan = plan_in(send(app, interface, tool, files, dry_run=True))
    answer = send(app, interface, tool, files, apply=plan["token"], yes=True)
    applied = answer["meta"]["applied"]
    nothing = digest_state(Path(files[0]))
    assert applied["actions"] == [
        {
            "action": "delete",
            "target": file,
            "before": planned["state"],
            "after": nothing,
        }
        for file, planned in zip(files, plan["actions"], strict=True)
    ]
    assert applied["count"] == 2
    assert len(applied["state"]) == 32 and applied["state"] != plan["state"]


def test_only_a_path_has_a_state_after_the_run(tmp_path: Path) -> None:
    app = Tooli("t")
    target = tmp_path / "a.txt"

    @app.command()
    @dry_run_support
    def write(text: str) -> None:
        if not record_dry_action("write", target, state=target):
            target.write_text(text)
        if not record_dry_action("send", "a mail", state=["from", "to"]):
            raise StateError("no network")

    plan = app.call("write", text="x", dry_run=True).result
    done = app.call("write", text="x", apply=plan["token"])
    assert done.error is not None and done.meta is not None
    [written, sent] = done.meta["applied"]["actions"]
    assert written["before"] == plan["actions"][0]["state"]
    assert written["after"] == digest_state(target)
    assert sent == {"action": "send", "target": "a mail", "before": plan["actions"][1]["state"]}


def test_a_long_report_is_cut(tmp_path: Path) -> None:
    app = Tooli("t")

    @app.command()
    @dry_run_support
    def touch(count: int) -> None:
        for i in range(count):
            record_dry_action("touch", tmp_path / str(i))

    plan = app.call("touch", count=250, dry_run=True).result
    done = app.call("touch", count=250, apply=plan["token"])
    assert done.meta["applied"]["count"] == 250
    assert len(done.meta["applied"]["actions"]) == 100
    assert "state" not in done.meta["applied"]


@pytest.mark.parametrize("interface", INTERFACES)
def test_dry_run_takes_precedence_over_apply(interface: str, files: list[str]) -> None:
    app = make_app()
    token = plan_in(send(app, interface, "delete", files, dry_run=True))["token"]
    plan = plan_in(send(app, interface, "delete", files, dry_run=True, apply=token, yes=True))
    assert plan["basis"] == "dry_run"
    assert are_deleted(files) == [False, False]
    assert send(app, interface, "delete", files, apply=token, yes=True)["ok"], (
        "the dry run did not use the token"
    )


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("tool", ALL)
def test_token_with_other_arguments_is_rejected(
    tool: str, interface: str, files: list[str]
) -> None:
    app = make_app()
    token = plan_in(send(app, interface, tool, files[:1], dry_run=True))["token"]
    found = send(app, interface, tool, files, apply=token, yes=True)
    assert found["error"]["code"] == "E1051"
    assert found["error"]["field"] == "apply"
    assert are_deleted(files) == [False, False]


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("tool", KINDS)
def test_token_is_rejected_if_a_file_has_changed(
    tool: str, interface: str, files: list[str]
) -> None:
    app = make_app()
    token = plan_in(send(app, interface, tool, files, dry_run=True))["token"]
    Path(files[1]).write_text("six")  # of the same size
    found = send(app, interface, tool, files, apply=token, yes=True)
    assert found["error"]["code"] == "E3053"
    assert [one["target"] for one in found["error"]["details"]["changed"]] == [files[1]]
    assert "added" not in found["error"]["details"]
    assert are_deleted(files) == [False, False]


@pytest.mark.parametrize("tool", ["wipe", "count"])
def test_token_is_rejected_if_the_content_of_a_file_has_changed(
    tool: str, files: list[str]
) -> None:
    """The actions do not contain the content, but the token does."""
    app = make_app()
    counted: list[int] = []

    @app.command(annotations=Destructive)
    @dry_run_support
    def count(files: list[Path]) -> int:
        """Record no state of the files."""
        if not record_dry_action("count", "files"):
            counted.append(len(files))
        return len(files)

    token = app.call(tool, files=files, dry_run=True).result["token"]
    Path(files[1]).write_text("six")  # of the same size
    error = app.call(tool, files=files, apply=token, yes=True).error
    assert error.code == "E3053"
    assert "has changed" in error.message
    assert are_deleted(files) == [False, False]
    assert not counted


def test_plan_of_the_function_itself_has_no_token() -> None:
    app = Tooli("own")
    ran: list[int] = []

    def scale(count: int) -> None:
        ran.append(count)

    scale.tooli_plan = lambda count: {"would_start": count}  # type: ignore[attr-defined]
    app.command("scale")(scale)
    assert app.call("scale", count=3, dry_run=True).result == {"would_start": 3}
    assert not ran


def test_token_is_rejected_without_the_key_of_its_digests(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    token = app.call("wipe", files=files, dry_run=True).result["token"]
    with monkeypatch.context() as patch:
        patch.setattr(plans, "load_plan_digest_key", lambda: None)
        error = app.call("wipe", files=files, apply=token, yes=True).error
    assert error.code == "E1051"
    assert "the key for plans cannot be read" in error.message
    assert are_deleted(files) == [False, False]
    assert app.call("wipe", files=files, apply=token, yes=True).ok, "the token was not used"


def test_rejected_tokens_have_their_exit_codes(files: list[str]) -> None:
    app = make_app()
    token = app.call("delete", files=files, dry_run=True).result["token"]
    Path(files[1]).write_text("other")
    assert (
        app.call("delete", files=files, apply=token, yes=True).error.to_exception().exit_code == 20
    )
    assert (
        app.call("delete", files=files, apply="pAAAA", yes=True).error.to_exception().exit_code == 2
    )


def test_new_and_missing_actions_are_reported(tmp_path: Path) -> None:
    app = Tooli("sweeper")

    @app.command()
    @dry_run_support
    def sweep(folder: Path) -> int:
        found = sorted(folder.glob("*.tmp"))
        for path in found:
            if not record_dry_action("delete", path.name):
                path.unlink()
        return len(found)

    for name in ("a.tmp", "b.tmp"):
        (tmp_path / name).touch()
    token = app.call("sweep", folder=tmp_path, dry_run=True).result["token"]
    (tmp_path / "a.tmp").rename(tmp_path / "c.tmp")
    error = app.call("sweep", folder=tmp_path, apply=token).error
    assert error.code == "E3053"
    assert error.details == {"added": [{"action": "delete", "target": "c.tmp"}], "gone": 1}
    assert len(list(tmp_path.glob("*.tmp"))) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token[:-1] + ("A" if token[-1] != "A" else "B"),
        lambda token: token[:12] + ("A" if token[12] != "A" else "B") + token[13:],
        lambda token: "c" + token[1:],
        lambda token: token[:40],
        lambda token: token + "=",
        lambda token: token + "AAAA",
        lambda token: "p",
        lambda token: "p" + "A" * 76,
    ],
)
def test_changed_token_is_rejected(change, files: list[str]) -> None:
    app = make_app()
    token = app.call("delete", files=files, dry_run=True).result["token"]
    found = app.call("delete", files=files, apply=change(token), yes=True)
    assert found.error.code == "E1051"
    assert are_deleted(files) == [False, False]


def test_token_signed_with_another_key_is_rejected(files: list[str], state: Path) -> None:
    app = make_app()
    token = app.call("delete", files=files, dry_run=True).result["token"]
    (state / "plans.key").unlink()
    assert app.call("delete", files=files, apply=token, yes=True).error.code == "E1051"


def test_expired_token_is_rejected(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from tooli.storage import signing

    app = make_app()
    token = app.call("delete", files=files, dry_run=True).result["token"]
    now = signing.time()
    monkeypatch.setattr(signing, "time", lambda: now + signing.PLAN_TTL_SECONDS + 2)
    found = app.call("delete", files=files, apply=token, yes=True)
    assert found.error.code == "E1051"
    assert "it has expired" in found.error.message


def test_token_is_bound_to_the_current_folder(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another folder, a relative path is another file."""
    app = make_app()
    monkeypatch.chdir(tmp_path)
    token = app.call("wipe", files=["one"], dry_run=True).result["token"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "one").touch()
    monkeypatch.chdir(other)
    assert app.call("wipe", files=["one"], apply=token, yes=True).error.code == "E1051"
    assert (other / "one").exists()


def test_token_is_bound_to_the_principal(files: list[str]) -> None:
    app = make_app()
    tool = app.find("delete")

    def run_as(principal: str | None, **options):
        caller = Caller("http", principal=principal)
        call, stages = app.prepare(Call(tool, {"files": files}, caller, [], Options(**options)))
        return run(call, stages)

    token = run_as("ada", dry_run=True).value["token"]
    for other in ("bob", None):
        outcome = run_as(other, apply=token, yes=True)
        assert isinstance(outcome, Failed)
        assert outcome.error.code == "E1051"
    assert are_deleted(files) == [False, False]
    run_as("ada", apply=token, yes=True)
    assert are_deleted(files) == [True, True]


def test_token_is_bound_to_the_version_of_the_command(files: list[str]) -> None:
    token = make_app().call("wipe", files=files, dry_run=True).result["token"]
    newer = make_app()
    newer._state.version = "2.0"
    found = newer.call("wipe", files=files, apply=token, yes=True)
    assert found.error.code == "E3053"
    assert are_deleted(files) == [False, False]


def test_plan_token_is_not_an_approval(files: list[str]) -> None:
    app = Tooli("gate")

    @app.command(requires_approval=True)
    @dry_run_support
    def launch() -> str:
        return "up" if not record_dry_action("launch", "rocket") else ""

    token = app.call("launch", dry_run=True).result["token"]
    assert app.call("launch", apply=token, yes=True).error.code == "E2101"


def test_plan_has_no_token_if_the_state_folder_is_not_writable(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    token = app.call("delete", files=files, dry_run=True).result["token"]
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "file" / "below"))
    plan = app.call("delete", files=files, dry_run=True)
    assert "token" not in plan.result
    assert any("no token" in warning for warning in plan.meta["warnings"])
    found = app.call("delete", files=files, apply=token, yes=True)
    assert found.error.code == "E1051"
    assert are_deleted(files) == [False, False]


def test_token_is_rejected_if_its_use_cannot_be_stored(files: list[str], state: Path) -> None:
    app = make_app()
    token = app.call("delete", files=files, dry_run=True).result["token"]
    (state / "plans").write_text("not a folder")
    found = app.call("delete", files=files, apply=token, yes=True)
    assert found.error.code == "E4060"
    assert found.error.to_exception().exit_code == 75
    assert are_deleted(files) == [False, False]


# ------------------------------------------------------------------ only planned actions


def test_unplanned_action_is_stopped(tmp_path: Path) -> None:
    """The function performs an action that it does not record in a dry run."""
    app = Tooli("app")
    done = []

    @app.command()
    @dry_run_support
    def work(swallow: bool = False) -> str:
        if not record_dry_action("make", "a"):
            done.append("a")
            try:
                if not record_dry_action("break", "b"):
                    done.append("b")
            except Exception:
                if not swallow:
                    raise
        return "done"

    for swallow in (False, True):
        done.clear()
        plan = app.call("work", swallow=swallow, dry_run=True).result
        assert [one["target"] for one in plan["actions"]] == ["a"]
        error = app.call("work", swallow=swallow, apply=plan["token"]).error
        assert error.code == "E3053"
        assert error.details["unplanned"] == {"action": "break", "target": "b"}
        assert error.details["done"] == [{"action": "make", "target": "a"}]
        assert done == ["a"]


def test_state_that_the_plan_itself_changes_is_accepted(tmp_path: Path) -> None:
    """The state of the second action is changed by the first one."""
    app = Tooli("chain")

    @app.command()
    @dry_run_support
    def shift(folder: Path) -> int:
        names = ["c", "b", "a"]
        for old, new in zip(names[1:], names, strict=False):
            if not record_dry_action("rename", folder / old, state=folder):
                (folder / old).rename(folder / new)
        return len(names)

    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_text(name)
    token = app.call("shift", folder=folder, dry_run=True).result["token"]
    assert app.call("shift", folder=folder, apply=token).ok
    assert (folder / "c").read_text() == "b"
    assert (folder / "b").read_text() == "a"


# ------------------------------------------------------------------ the schema


@pytest.mark.parametrize("tool", ALL)
def test_plans_match_the_documented_schema(tool: str, files: list[str]) -> None:
    import json

    from docs.generate import ROOT
    from jsonschema import Draft202012Validator

    page = (ROOT / "docs" / "plans.md").read_text(encoding="utf-8")
    schema = json.loads(page.partition("```json\n")[2].partition("```")[0])
    Draft202012Validator.check_schema(schema)
    plan = make_app().call(tool, files=files, dry_run=True).to_dict()["result"]
    Draft202012Validator(schema).validate(json.loads(json.dumps(plan)))
    assert set(plan) <= set(schema["properties"])


def test_call_that_ends_with_a_question_keeps_its_token() -> None:
    """A stateless MCP client sends the same call again, with the answers."""

    class Client(Peer):
        answered = False

        def hold_claim(self, claim_id: str) -> None:
            self.held = frozenset((claim_id,))

        def supports(self, method: str) -> bool:
            return True

        def ask(self, questions):
            if not self.answered:
                raise InputRequired(questions)
            return {name: {"action": "accept", "content": {"x": "y"}} for name in questions}

    app, client = Tooli("a"), Client()

    @app.command()
    def ask(ctx: Context) -> str:
        return str(ctx.elicit("name?", {"type": "object", "properties": {"x": {}}}).content)

    def go(**options):
        call = Call(app.find("ask"), {}, Caller("mcp"), [], Options(**options), peer=client)
        call, stages = app.prepare(call)
        return run(call, stages)

    token = go(dry_run=True).value["token"]
    with pytest.raises(InputRequired):
        go(apply=token)
    assert go(apply=token).error.code == "E1051"
    client.answered, client.held_claims = True, client.held
    assert go(apply=token) == Ok("{'x': 'y'}")
    client.held_claims = frozenset()
    assert go(apply=token).error.code == "E1051"


def test_call_that_an_inner_stage_rejects_does_not_use_its_token(
    files: list[str], state: Path
) -> None:
    app = make_app(security_policy="strict")
    token = app.call("delete", files=files, dry_run=True).result["token"]
    log = state / "audit"
    log.mkdir(parents=True, exist_ok=True)
    (log / "shredder.jsonl").mkdir()  # under `strict`, a call that cannot be logged does not run
    assert app.call("delete", files=files, yes=True, apply=token).error.code == "E4061"
    (log / "shredder.jsonl").rmdir()
    assert app.call("delete", files=files, yes=True, apply=token).ok
