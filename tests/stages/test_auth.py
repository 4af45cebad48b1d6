"""Invalid settings, tokens and scopes."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from tests.stages.stage_calls import Files, make_call, make_context, pass_through

from tooli import AuthError, InputError
from tooli.config.layers import SettingFault
from tooli.core.call import Call, Caller, Ok, Options
from tooli.pipeline.drivers import run
from tooli.stages.auth import (
    authenticate_caller,
    authorize,
    check_callers,
    reject_invalid_settings,
    report_ignored_settings,
)

TOKEN = "a-token-of-ada"


@pytest.fixture
def token_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o600)
    monkeypatch.setenv("TOOLI_TOKEN_FILE", str(path))
    return path


@pytest.fixture
def tokens(tmp_path: Path) -> str:
    path = tmp_path / "tokens"
    path.write_text(f"{sha256(TOKEN.encode()).hexdigest()} ada read write\n")
    return str(path)


def authenticate(call: Call, **settings: str) -> Call:
    stage = authenticate_caller(make_context(call, **settings))
    assert stage is not None
    return pass_through(stage, call)[0]


class TestAuthentication:
    def test_no_stage_without_a_token_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("TOOLI_TOKEN_FILE", raising=False)
        assert authenticate_caller(make_context(make_call())) is None

    def test_token_sets_principal_and_scopes(self, token_file: Path, tokens: str) -> None:
        caller = authenticate(make_call(), tokens=tokens).caller
        assert (caller.principal, caller.scopes) == ("ada", frozenset(("read", "write")))

    def test_token_file_readable_by_others_is_a_warning(
        self, token_file: Path, tokens: str
    ) -> None:
        token_file.chmod(0o644)
        call = make_call()
        authenticate(call, tokens=tokens)
        assert call.warnings == [
            "other users can read the file of TOOLI_TOKEN_FILE: run chmod 600 on it"
        ]

    def test_unknown_token_is_rejected(self, token_file: Path, tokens: str) -> None:
        token_file.write_text("another")
        with pytest.raises(AuthError, match="is unknown"):
            authenticate(make_call(), tokens=tokens)

    @pytest.mark.parametrize("surface", ["http", "python"])
    def test_token_file_does_not_identify_other_callers(
        self, surface: str, token_file: Path, tokens: str
    ) -> None:
        assert authenticate(make_call(surface=surface), tokens=tokens).caller.principal is None

    def test_token_file_does_not_replace_a_verified_caller(
        self, token_file: Path, tokens: str
    ) -> None:
        call = make_call(caller={"principal": "bob"})
        assert authenticate(call, tokens=tokens).caller.principal == "bob"

    @pytest.mark.parametrize(("scopes", "warned"), [(["read"], True), ([], False)])
    def test_token_without_token_settings_is_ignored(
        self, scopes: list[str], warned: bool, token_file: Path
    ) -> None:
        call = make_call(auth=scopes)
        assert authenticate(call).caller.principal is None
        assert bool(call.warnings) is warned


class TestAuthorization:
    def test_strict_requires_declared_scopes(self) -> None:
        with pytest.raises(AuthError, match="does not declare its scopes") as caught:
            pass_through(authorize, make_call(policy="strict"))
        assert (caught.value.code, caught.value.exit_code) == ("E2002", 30)

    def test_strict_rejects_a_caller_without_the_scopes(self) -> None:
        call = make_call(policy="strict", auth=["b", "a", "c"], caller={"scopes": frozenset("c")})
        with pytest.raises(AuthError) as caught:
            pass_through(authorize, call)
        assert caught.value.code == "E2001"
        assert caught.value.details == {"missing_scopes": ["a", "b"]}

    @pytest.mark.parametrize(
        ("policy", "warnings"), [("standard", ["the caller lacks the scope a"]), ("off", [])]
    )
    def test_missing_scope_warns_only_under_standard(
        self, policy: str, warnings: list[str]
    ) -> None:
        call = make_call(policy=policy, auth=["a"])
        assert pass_through(authorize, call, Ok(1))[1] == Ok(1)
        assert call.warnings == warnings

    @pytest.mark.parametrize("policy", ["standard", "strict"])
    def test_caller_with_the_scopes_is_allowed(self, policy: str) -> None:
        call = make_call(policy=policy, auth=["a"], caller={"scopes": frozenset("ab")})
        assert pass_through(authorize, call, Ok(1))[1] == Ok(1)
        assert call.warnings == []

    def test_standard_allows_every_caller_of_a_tool_without_scopes(self) -> None:
        call = make_call()
        assert pass_through(authorize, call, Ok(1))[1] == Ok(1)
        assert call.warnings == []


class TestAuthorizationOfAnApp:
    def test_strict_requires_declared_scopes_of_an_app(self) -> None:
        files = Files(security_policy="strict").add("list")
        error = files.run("list")[0].error
        assert isinstance(error, AuthError)
        assert (error.code, error.exit_code) == ("E2002", 30)
        assert not files.ran

    def test_strict_allows_every_caller_with_empty_scopes(self) -> None:
        files = Files(security_policy="strict").add("list", auth=[])
        assert isinstance(files.run("list")[0], Ok)

    def test_strict_rejects_missing_scopes(self) -> None:
        files = Files(security_policy="strict").add("write", auth=["b", "a", "c"])
        error = files.run("write", caller=Caller("http", scopes=frozenset("c")))[0].error
        assert error.code == "E2001"
        assert error.details == {"missing_scopes": ["a", "b"]}
        assert not files.ran

    def test_strict_allows_the_required_scopes(self) -> None:
        files = Files(security_policy="strict").add("write", auth=["a"])
        outcome, call = files.run("write", caller=Caller("http", scopes=frozenset({"a", "b"})))
        assert isinstance(outcome, Ok)
        assert not call.warnings

    def test_standard_warns_of_missing_scopes(self) -> None:
        files = Files().add("write", auth=["a"])
        outcome, call = files.run("write")
        assert isinstance(outcome, Ok)
        assert call.warnings == ["the caller lacks the scope a"]

    def test_off_does_not_warn_of_missing_scopes(self) -> None:
        files = Files(security_policy="off").add("write", auth=["a"])
        assert files.run("write")[1].warnings == []

    def test_standard_allows_every_caller_without_declared_scopes(self) -> None:
        files = Files().add("list", lambda: 5)
        call, _ = files.app.prepare(Call(files.app.find("list"), {}, Caller("cli"), [], Options()))
        assert run(call, [authorize]) == Ok(5)

    def test_strict_applies_to_a_dry_run(self) -> None:
        files = Files(security_policy="strict").add("write", auth=["a"])
        assert files.run("write", dry_run=True)[0].error.code == "E2001"


# ------------------------------------------------------------------ settings check


def test_call_is_rejected_before_it_runs() -> None:
    fault = SettingFault("allow_paths", "must be a list", "tooli.toml")
    stage = reject_invalid_settings(make_context(make_call(), faults=[fault]))
    with pytest.raises(InputError, match="allow_paths"):
        next(stage(make_call()))


@pytest.mark.parametrize(("surface", "is_shown"), [("cli", True), ("http", False), ("mcp", False)])
def test_ignored_settings_are_shown_to_local_callers_only(surface: str, is_shown: bool) -> None:
    call = make_call(surface=surface)
    stage = report_ignored_settings(make_context(call, ignored=["a setting in /home/ada"]))
    assert pass_through(stage, call, Ok(1))[1] == Ok(1)
    assert call.warnings == (["a setting in /home/ada"] if is_shown else [])


@pytest.mark.parametrize("callers", [["direct"], ["code"], ["direct", "code"]])
@pytest.mark.parametrize("is_from_script", [False, True])
def test_callers(callers: list[str], is_from_script: bool) -> None:
    call = make_call(callers=callers).replace(is_from_script=is_from_script)
    if ("code" if is_from_script else "direct") in callers:
        assert pass_through(check_callers, call, Ok(1)) == (call, Ok(1))
    else:
        with pytest.raises(AuthError, match="by a script" if is_from_script else "directly") as e:
            next(check_callers(call))
        assert (e.value.code, e.value.exit_code) == ("E2007", 30)
