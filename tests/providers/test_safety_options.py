"""Parameters of commands that have the names of safety options."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pydantic
import pytest

from tooli import DefinitionError, Tooli
from tooli.annotations import Destructive
from tooli.core import SafetyOptionWarning
from tooli.testing import invoke


def remove(path: str, dry_run: bool = False) -> str:
    return f"{path} {dry_run}"


def wait(timeout: float, *, yes: bool = False) -> str:
    return f"{timeout} {yes}"


def count(path: str) -> int:
    timeout = len(path)  # no parameter
    return timeout


class Removal(pydantic.BaseModel):
    path: str
    dry_run: bool = False


def remove_by_model(request: Removal) -> str:
    return request.path


@functools.wraps(remove)
def wrapped(*args: Any, **kwargs: Any) -> str:
    return remove(*args, **kwargs)


@functools.wraps(count)
def wrapped_count(*args: Any, **kwargs: Any) -> int:
    return count(*args, **kwargs)


@pytest.mark.parametrize(
    ("fn", "keywords", "flags"),
    [
        (remove, {}, ["--dry-run"]),
        (wait, {}, ["--timeout", "--yes"]),
        (wrapped, {}, ["--dry-run"]),
        (remove_by_model, {"input_model": Removal}, ["--dry-run"]),
        (wait, {"own_options": ["timeout"]}, ["--yes"]),
    ],
)
def test_author_is_told(fn: Any, keywords: dict[str, Any], flags: list[str]) -> None:
    app = Tooli("shop")
    with pytest.warns(SafetyOptionWarning) as caught:
        app.command(**keywords)(fn)
    (message,) = [str(warning.message) for warning in caught]
    assert caught[0].filename == __file__
    for flag in flags:
        assert f"{flag} " in message
        assert f"--tooli-{flag[2:]}" in message
    strict = Tooli("shop", security_policy="strict")
    with pytest.raises(DefinitionError, match="own_options="):
        strict.command(auth=[], **keywords)(fn)


@pytest.mark.parametrize(
    ("fn", "keywords"),
    [
        (count, {}),
        (wrapped_count, {}),
        (str, {}),  # has no signature
        (remove, {"own_options": ["dry_run"]}),
        (wait, {"own_options": ("yes", "timeout")}),
        (remove_by_model, {"input_model": Removal, "own_options": ["dry_run"]}),
    ],
)
@pytest.mark.parametrize("policy", ["standard", "strict"])
def test_author_who_means_it_is_not_told(fn: Any, keywords: dict[str, Any], policy: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Tooli("shop", security_policy=policy).command(**keywords)(fn)
    assert not caught


def test_policy_off_is_silent() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Tooli("shop", security_policy="off").command()(remove)
    assert not caught


def test_strict_app_around_the_app() -> None:
    inner = Tooli("inner")
    Tooli("outer", security_policy="strict").add_typer(inner, name="inner")
    with pytest.raises(DefinitionError, match="--tooli-dry-run"):
        inner.command()(remove)


@pytest.mark.parametrize(
    ("own_options", "message"),
    [
        (["dryrun"], "must be a list of dry_run, timeout, yes"),
        ("yes", "must be a list of dry_run, timeout, yes"),
        (["yes"], "the command has no such parameter"),
    ],
)
def test_invalid_keyword(own_options: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        Tooli("shop").command(own_options=own_options)(remove)


def test_lazy_command_is_not_imported() -> None:
    app = Tooli("shop")
    app.lazy_command("not_there:remove", own_options=["dry_run"])
    assert "not_there" not in sys.modules


def test_option_with_prefix_protects() -> None:
    """The flag with the prefix is tooli's own option, as the message says."""
    app, done = Tooli("shop"), list[str]()
    app.command("other")(lambda: None)

    @app.command(annotations=Destructive, own_options=["dry_run"])
    def delete(path: str, dry_run: bool = False) -> str:
        done.append(path)
        return path

    answer = invoke(app, "delete", "x", "--tooli-dry-run", "--json").envelope
    assert answer["meta"]["dry_run"]
    assert done == []


def test_warning_in_a_process(tmp_path: Path) -> None:
    """People who run the app see nothing; `-X dev` and tests show it."""
    file = tmp_path / "app.py"
    file.write_text(
        "from tooli import Tooli\napp = Tooli('a')\n@app.command()\n"
        "def go(timeout: int = 1) -> int: return timeout\nif __name__ == '__main__': app()\n"
    )
    quiet = subprocess.run([sys.executable, file, "--json"], capture_output=True, text=True)
    assert (json.loads(quiet.stdout)["result"], quiet.stderr) == (1, "")
    shown = subprocess.run([sys.executable, "-X", "dev", file], capture_output=True, text=True)
    assert "app.py:3: SafetyOptionWarning: the command 'go' has" in shown.stderr
