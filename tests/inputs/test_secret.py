"""Secrets: passed by location on a command line and by value elsewhere; always masked."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING, Annotated, Any

import pydantic
import pytest

from tooli import Option, SecretInput, StdinOr, Tooli
from tooli.annotations import Destructive
from tooli.inputs.secret import MAX_SECRET_BYTES
from tooli.testing import invoke

if TYPE_CHECKING:
    from pathlib import Path

CANARY = "c4nary-5ecret"


class Account(pydantic.BaseModel):
    user: str
    token: SecretInput[str]


def make_app() -> Tooli:
    app = Tooli("vault", version="1.0")

    @app.command()
    def login(token: SecretInput[str], user: str = "me", port: int = 1) -> dict:
        """Log in."""
        return {"length": len(token.reveal()), "text": f"{token}", "secret": token}

    @app.command()
    def number(pin: Annotated[SecretInput[int], Option("--pin", envvar="VAULT_PIN")]) -> int:
        """Take a number as a secret."""
        return pin.reveal() + 1

    @app.command()
    def raw(key: Annotated[SecretInput[bytes], Option()]) -> int:
        """Take bytes as a secret."""
        return len(key.reveal())

    @app.command()
    def usual(key: SecretInput[str] = "env:VAULT_KEY") -> int:  # type: ignore[assignment]
        """Take a secret with a default."""
        return len(key.reveal())

    @app.command(annotations=Destructive)
    def drop(token: SecretInput[str]) -> str:
        """Drop everything."""
        return "dropped"

    @app.command()
    def fail(token: SecretInput[str]) -> str:
        """Fail."""
        raise ValueError(f"with {token!r} in {locals()}")

    @app.command()
    def both(token: SecretInput[str], data: StdinOr[str]) -> str:
        """Take a secret and an input."""
        return data

    @app.command()
    def several(tokens: list[SecretInput[str]], n: int = 1) -> int:
        """Take several secrets."""
        return len(tokens)

    @app.command(annotations=Destructive)
    def account(account: Account, accounts: list[Account] | None = None, n: int = 1) -> Account:
        """Take models that contain secrets."""
        return account

    return app


@pytest.fixture(scope="module")
def app() -> Tooli:
    return make_app()


def test_every_representation_is_masked() -> None:
    secret = SecretInput(CANARY)
    texts = [
        *(repr(secret), str(secret), f"{secret}", f"{secret!r}", f"{secret:>30}", str((secret,))),
        *(
            repr([secret]),
            repr({"a": secret}),
            repr(copy.deepcopy(secret)),
            repr(copy.copy(secret)),
        ),
        *(repr(vars(type(secret))), repr(dir(secret))),
    ]
    assert not any(CANARY in text for text in texts)
    assert secret.reveal() == CANARY
    with pytest.raises(TypeError, match="cannot be pickled") as refused:
        pickle.dumps(secret)
    assert CANARY not in str(refused.value)
    with pytest.raises(TypeError):
        json.dumps(secret)


def test_secrets_are_compared_by_value() -> None:
    assert SecretInput("a") == SecretInput("a")
    assert SecretInput("a") != SecretInput("b")
    assert SecretInput("a") != "a"
    assert SecretInput("a")
    assert not SecretInput("")


def test_secret_in_model_is_converted_and_masked() -> None:
    class Login(pydantic.BaseModel):
        user: str
        token: SecretInput[str]
        pin: SecretInput[int] = SecretInput(1)

    login = Login(user="a", token=CANARY, pin="2")  # type: ignore[arg-type]
    assert login.token.reveal() == CANARY
    assert login.pin.reveal() == 2
    assert CANARY not in repr(login)
    assert login.model_dump(mode="json") == {"user": "a", "token": "***", "pin": "***"}
    assert CANARY not in login.model_dump_json()
    assert Login.model_json_schema()["properties"]["token"]["writeOnly"] is True
    with pytest.raises(pydantic.ValidationError) as refused:
        Login(user="a", token="x", pin="zzz")  # type: ignore[arg-type]
    assert "the secret is not valid" in str(refused.value)


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_secret_is_read_from_file(app: Tooli, tmp_path: Path, ending: str) -> None:
    file = tmp_path / "token"
    file.write_bytes((CANARY + ending).encode())
    done = invoke(app, "login", f"@{file}", mode="json")
    assert done.result == {"length": len(CANARY), "text": "***", "secret": "***"}


def test_secret_is_read_from_stdin(app: Tooli) -> None:
    done = invoke(app, "login", "-", input=CANARY + "\n", mode="json")
    assert done.result["length"] == len(CANARY)


def test_secret_is_read_from_environment(app: Tooli) -> None:
    done = invoke(app, "login", "env:TOKEN", env={"TOKEN": CANARY}, mode="json")
    assert done.result["length"] == len(CANARY)
    assert invoke(app, "usual", env={"VAULT_KEY": "abc"}, mode="json").result == 3
    assert invoke(app, "number", env={"VAULT_PIN": "41"}, mode="json").result == 42


def test_python_callers_pass_the_value(app: Tooli) -> None:
    assert app.call("login", token=CANARY).unwrap()["length"] == len(CANARY)
    assert app.call("login", token=SecretInput(CANARY)).unwrap()["length"] == len(CANARY)
    assert app.call("number", pin="41").unwrap() == 42
    assert app.call("raw", key=b"abc").unwrap() == 3
    assert app.call("login", token="env:HOME").unwrap()["length"] == len("env:HOME")
    assert app.call("login", token="@/etc/passwd").unwrap()["length"] == len("@/etc/passwd")


REFUSED: list[tuple[tuple[str, ...], str, str]] = [
    (("login", CANARY), "E1032", "must not be on a command line"),
    (("login", CANARY, "--port", "x"), "E1003", "'port'"),
    (("login", "env:NOT_SET_AT_ALL"), "E1003", "is not set"),
    (("login", "@/nowhere/at/all"), "E1003", "does not exist"),
    (("login", "@/"), "E1003", "not a readable file"),
    (("number", "--pin", "env:CANARY"), "E1003", "is not valid: it must be int"),
    (("number", "--pin", "-"), "E1003", "is not valid: it must be int"),
    (("several", "env:CANARY", CANARY), "E1032", "tokens.1"),
    (("drop", "env:CANARY"), "E1010", "needs a confirmation"),
]


@pytest.mark.parametrize(("argv", "code", "message"), REFUSED, ids=lambda v: str(v)[:40])
@pytest.mark.parametrize("mode", ["json", "jsonl", "text", "plain"])
def test_errors_do_not_contain_the_secret(app, argv, code, message, mode) -> None:
    done = invoke(app, *argv, "-vv", input=CANARY, env={"CANARY": CANARY}, mode=mode)
    assert done.exit_code == 2
    assert CANARY not in done.stdout + done.stderr
    if mode == "json":
        assert done.error is not None
        assert done.error["code"] == code
        assert message in json.dumps(done.error)


def test_suggestion_contains_location_of_secret(app: Tooli, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(CANARY)
    error = invoke(app, "login", f"@{file}", "--prt", "1", mode="json").error
    assert error is not None
    assert error["suggestion"]["argv"] == ["vault", "login", f"@{file}", "--port", "1"]
    error = invoke(app, "drop", f"@{file}", mode="json").error
    assert error is not None
    assert error["suggestion"]["argv"] == ["vault", "drop", f"@{file}", "--yes"]


@pytest.mark.parametrize("tool", ["login", "drop", "fail"])
def test_suggestion_does_not_contain_value(app: Tooli, tool: str) -> None:
    result = app.call(tool, token=CANARY, prt=1)
    assert CANARY not in json.dumps(result.to_dict())
    assert CANARY not in repr(result)
    result = app.call(tool, token=CANARY)
    assert CANARY not in json.dumps(result.to_dict())
    if tool == "drop":
        assert result.error is not None
        assert result.error.suggestion is not None
        assert result.error.suggestion["arguments"] == {"token": "<token>", "yes": True}
    several = app.call("several", tokens=[CANARY], n="x")
    assert CANARY not in json.dumps(several.to_dict())


def test_dry_run_does_not_contain_secret(app: Tooli) -> None:
    for result in (
        app.call("login", token=CANARY, dry_run=True).to_dict(),
        invoke(app, "login", "-", "--dry-run", input=CANARY, mode="json").envelope,
    ):
        assert result["result"]["arguments"] == {"token": "***", "user": "me", "port": 1}


def test_secret_and_input_cannot_share_stdin(app: Tooli) -> None:
    error = invoke(app, "both", "-", "-", input="x", mode="json").error
    assert error is not None
    assert error["code"] == "E1035"


def test_schema_of_secret_is_a_write_only_password(app: Tooli) -> None:
    from tooli.schema.json_schema import input_schema

    tool: Any = app.find("login")
    assert input_schema(tool)["properties"]["token"] == {
        "type": "string",
        "format": "password",
        "writeOnly": True,
    }


def test_json_input_on_command_line_must_contain_location(app: Tooli, tmp_path: Path) -> None:
    """`--input` on the command line must contain the location, not the value."""
    line = json.dumps({"token": CANARY})
    done = invoke(app, "login", "--input", line, mode="json")
    assert done.error is not None
    assert done.error["code"] == "E1032"
    assert CANARY not in done.stdout
    named = json.dumps({"token": "env:TOKEN"})
    assert invoke(app, "login", "--input", named, env={"TOKEN": "abc"}, mode="json").ok
    file = tmp_path / "all.json"
    file.write_text(line)
    assert invoke(app, "login", "--input", f"@{file}", mode="json").result["length"] == len(CANARY)
    assert invoke(app, "login", "--input", "-", input=line, mode="json").ok


def test_secret_option_with_prompt_accepts_location() -> None:
    app = Tooli("asks")

    @app.command()
    def login(token: Annotated[SecretInput[str], Option(prompt=True, hide_input=True)]) -> int:
        return len(token.reveal())

    assert invoke(app, "--token", "env:T", env={"T": "abc"}, mode="json").result == 3
    assert invoke(app, "--token", "env:T", env={"T": "abc"}, mode="text").stdout == "3\n"
    assert invoke(app, mode="text").exit_code == 2


def test_comparison_does_not_read_the_location() -> None:
    from tooli.inputs.secret import SecretShape

    class Named:
        name = "x"

    named: Any = SecretShape(str).parse("-", Named(), True)  # type: ignore[arg-type]
    assert named == named
    assert named != SecretInput("a")


@pytest.mark.parametrize("value", [{CANARY: 1}, [CANARY], 5])
def test_strict_validation_does_not_quote_secret(app: Tooli, value: Any) -> None:
    """`Prefer: handling=strict` reports errors of jsonschema."""
    from tooli.http.strict_validation import StrictValidator

    tool: Any = app.find("login")
    problems = StrictValidator().problems(tool, {"token": value})
    assert [problem.field for problem in problems] == ["token"]
    assert problems[0].message == "'token': a secret must be a string"


@pytest.mark.parametrize("more", [{}, {"yes": True}, {"dry_run": True}, {"n": "x"}, {"nn": 1}])
@pytest.mark.parametrize("part", [{}, {"user": 3}])
def test_secret_in_model_is_masked_everywhere(
    app: Tooli, more: dict[str, Any], part: dict[str, Any]
) -> None:
    """Results, plans and suggestions do not contain the secret."""
    given = {"user": "me", "token": CANARY, **part}
    result = app.call("account", account=given, accounts=[given], **more)
    assert CANARY not in json.dumps(result.to_dict()) + repr(result.error)
    words = [
        "account",
        json.dumps(given),
        *(f"--{k.replace('_', '-')}={v}" for k, v in more.items()),
    ]
    done = invoke(app, *[word.removesuffix("=True") for word in words], mode="json")
    assert CANARY not in done.stdout + done.stderr


# ------------------------------------------------------------------ lists and locations


def make_list_app() -> Tooli:
    app = Tooli("vault")

    @app.command()
    def lengths(
        keys: Annotated[list[SecretInput[str]], Option("--key", envvar="VAULT_KEYS")],
    ) -> list[int]:
        return [len(key.reveal()) if key.is_loaded else -1 for key in keys]

    return app


def test_list_of_secrets_from_environment() -> None:
    done = invoke(make_list_app(), mode="json", env={"VAULT_KEYS": "abcd efghi"})
    assert done.envelope.get("result") == [4, 5], done.stdout


def test_list_of_secrets_is_loaded_before_call(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("abcd\n")
    arguments = ["--key", f"@{file}", "--key", "env:OTHER_KEY"]
    done = invoke(make_list_app(), *arguments, mode="json", env={"OTHER_KEY": "efghi"})
    assert done.envelope.get("result") == [4, 5], done.stdout
    file.write_bytes(b"\xff\xfe")
    done = invoke(make_list_app(), *arguments, mode="json", env={"OTHER_KEY": "efghi"})
    assert done.error["code"] == "E1003"


def test_large_secret_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"x" * MAX_SECRET_BYTES)
    done = invoke(make_app(), "login", f"@{file}", mode="json")
    assert done.envelope["result"]["length"] == MAX_SECRET_BYTES
    file.write_bytes(b"x" * (MAX_SECRET_BYTES + 1))
    for argument, data in ((f"@{file}", None), ("-", file.read_bytes())):
        done = invoke(make_app(), "login", argument, mode="json", input=data)
        assert (done.error["code"], done.error["field"]) == ("E1003", "token")
        assert "1,048,576 bytes" in done.error["message"]


class TestTuples:
    def make_app(self) -> Tooli:
        app = Tooli("pairs")

        @app.command(auth=[])
        def pair(
            pair: Annotated[tuple[SecretInput[str], SecretInput[str]], Option(envvar="PAIR")],
        ) -> list[int]:
            return [len(secret.reveal()) for secret in pair]

        @app.command(auth=[])
        def mixed(pair: tuple[str, SecretInput[str]]) -> list[object]:
            return [pair[0], len(pair[1].reveal())]

        return app

    def run(self, *words: str, **env: str) -> dict[str, Any]:
        return json.loads(invoke(self.make_app(), *words, "--json", env=env).stdout)

    def test_each_word_is_the_location_of_a_secret(self, tmp_path: Path) -> None:
        file = tmp_path / "secret.txt"
        file.write_text("from-file")
        found = self.run("pair", "--pair", "env:A", f"@{file}", A="alpha")
        assert found["result"] == [5, 9]
        assert "warnings" not in found["meta"]
        assert self.run("mixed", "x", "env:A", A="alpha")["result"] == ["x", 5]

    def test_words_of_a_variable_are_the_secrets(self) -> None:
        assert self.run("pair", PAIR="one three")["result"] == [3, 5]
        error = self.run("pair", PAIR="one")["error"]
        assert error["message"] == "'pair': 2 values are required, but 1 given"

    def test_secrets_on_the_command_line_are_rejected(self) -> None:
        found = self.run("pair", "--pair", "plain1", "env:A", A="alpha")
        assert (found["error"]["code"], found["error"]["field"]) == ("E1032", "pair.0")
        assert "plain1" not in str(found)
        assert "alpha" not in str(found)

    def test_missing_secrets_are_described(self) -> None:
        message = self.run("pair")["error"]["message"]
        assert message.startswith("'pair' is required: 2 values, each a secret: @FILE")

    def test_json_contains_the_values(self) -> None:
        result = self.make_app().call("pair", pair=["aa", "bbb"])
        assert result.result == [2, 3]
