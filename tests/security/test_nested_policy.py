"""The rules of a command are the strictest along its path, on every interface."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from tooli import Tooli
from tooli.annotations import Destructive
from tooli.core import AppState
from tooli.core.call import Call
from tooli.core.tool import Guard, Tool
from tooli.errors import DefinitionError
from tooli.execution.sandbox.sandbox_runner import SandboxSupport
from tooli.testing import Case, assert_parity, invoke
from tooli.testing.app_interfaces import interfaces


def make_strict(name: str = "vault", policy: Any = "strict", **options: Any) -> Tooli:
    """Return an app with one command that declares no scopes, which `strict` rejects."""
    app = Tooli(name, security_policy=policy)
    app.command("peek", **options)(peek)
    app.command("other", auth=[])(lambda: "other")
    return app


def peek() -> str:
    return "secret"


def codes(app: Tooli, tool: str) -> set[str | None]:
    """Return the error code of a call on each interface."""
    found: set[str | None] = set()
    for interface in interfaces(app):
        envelope = interface.send_case(Case(tool)).envelope
        found.add((envelope.get("error") or {}).get("code"))
    return found


def below_standard() -> tuple[Tooli, str]:
    root = Tooli("root")
    root.add_typer(make_strict(), name="vault")
    return root, "vault.peek"


def nested_twice() -> tuple[Tooli, str]:
    root, middle = Tooli("root"), Tooli("middle")
    middle.add_typer(make_strict(), name="vault")
    root.add_typer(middle, name="middle")
    return root, "middle.vault.peek"


def strict_in_the_middle() -> tuple[Tooli, str]:
    root, middle = Tooli("root"), Tooli("middle", security_policy="strict")
    middle.add_typer(make_strict(policy="off"), name="vault")
    root.add_typer(middle, name="middle")
    return root, "middle.vault.peek"


def below_plain_typer() -> tuple[Tooli, str]:
    root, plain = Tooli("root"), typer.Typer()
    plain.add_typer(make_strict(), name="vault")
    root.add_typer(plain, name="plain")
    return root, "plain.vault.peek"


def plain_typer_below_strict() -> tuple[Tooli, str]:
    root, middle, plain = Tooli("root"), Tooli("m", security_policy="strict"), typer.Typer()
    plain.command("peek")(peek)
    plain.command("other")(lambda: None)
    middle.add_typer(plain, name="plain")
    root.add_typer(middle, name="middle")
    return root, "middle.plain.peek"


def without_a_name() -> tuple[Tooli, str]:
    root, vault = Tooli("root"), Tooli(security_policy="strict")
    vault.command("peek")(peek)
    root.command("own")(lambda: None)
    root.add_typer(vault)
    return root, "peek"


def group_without_a_name() -> tuple[Tooli, str]:
    root, unnamed = Tooli("root"), Tooli(security_policy="strict")
    unnamed.add_typer(make_strict(policy="standard"), name="vault")
    root.command("own")(lambda: None)
    root.add_typer(unnamed)
    return root, "vault.peek"


def root_is_off() -> tuple[Tooli, str]:
    root = Tooli("root", security_policy="off")
    root.add_typer(make_strict(), name="vault")
    return root, "vault.peek"


def typer_is_initialized() -> tuple[Tooli, str]:
    root, tool = below_standard()
    assert root.registered_groups
    return root, tool


def added_after_use() -> tuple[Tooli, str]:
    vault, root = make_strict(policy="standard"), Tooli("root")
    assert vault.call("peek").ok
    middle = Tooli("middle", security_policy="strict")
    root.add_typer(middle, name="middle")
    assert root.call("middle.vault.peek").error is not None
    middle.add_typer(vault, name="vault")
    return root, "middle.vault.peek"


TREES = [
    below_standard,
    nested_twice,
    strict_in_the_middle,
    below_plain_typer,
    plain_typer_below_strict,
    without_a_name,
    group_without_a_name,
    root_is_off,
    typer_is_initialized,
    added_after_use,
]


@pytest.mark.parametrize("make_tree", TREES)
def test_strict_below_a_weaker_app(make_tree: Any) -> None:
    root, tool = make_tree()
    assert codes(root, tool) == {"E2002"}


def test_warnings_and_meta_agree_on_every_interface() -> None:
    root, _ = below_standard()
    assert assert_parity(root, Case("vault.other"))["result"] == "other"


def test_two_places_of_one_app() -> None:
    """Each path has its own policy, in either order of registration."""
    for strict_first in (True, False):
        vault = make_strict(policy="standard")
        strict, open_ = Tooli("strict", security_policy="strict"), Tooli("open")
        root = Tooli("root")
        for app in (strict, open_) if strict_first else (open_, strict):
            app.add_typer(vault, name="vault")
            root.add_typer(app)
        assert codes(root, "strict.vault.peek") == {"E2002"}
        assert codes(root, "open.vault.peek") == {None}


def test_two_roots_of_one_app() -> None:
    vault, strict, open_ = make_strict(policy="off"), Tooli("s", security_policy="strict"), Tooli()
    strict.add_typer(vault)
    open_.add_typer(vault)
    assert codes(strict, "vault.peek") == {"E2002"}
    assert codes(open_, "vault.peek") == {None}


def test_app_called_directly_keeps_the_rules_of_the_apps_above() -> None:
    vault, other = make_strict(policy="standard"), Tooli("other")
    assert vault.call("peek").ok
    strict = Tooli("strict", security_policy="strict")
    strict.add_typer(vault)
    other.add_typer(vault)
    error = vault.call("peek").error
    assert error is not None and error.code == "E2002"


def test_app_called_directly_is_never_weaker_than_declared() -> None:
    vault, root = make_strict(), Tooli("root", security_policy="off")
    root.add_typer(vault)
    error = vault.call("peek").error
    assert error is not None and error.code == "E2002"


def test_off_below_standard_is_standard() -> None:
    root, inner = Tooli("root"), Tooli("inner", security_policy="off")
    inner.command("drop", annotations=Destructive)(lambda: "dropped")
    inner.command("keep")(lambda: None)
    root.add_typer(inner)
    assert codes(root, "inner.drop") == {"E1010"}
    assert inner.call("drop").error is not None  # it is below `root` now


def test_standard_below_off_is_standard() -> None:
    root, inner = Tooli("root", security_policy="off"), Tooli("inner")
    for app in (root, inner):
        app.command("drop", annotations=Destructive)(lambda: "dropped")
        app.command("keep")(lambda: None)
    root.add_typer(inner)
    assert codes(root, "drop") == {None}
    assert codes(root, "inner.drop") == {"E1010"}


def test_plain_typer_below_off_stays_off() -> None:
    root, plain = Tooli("root", security_policy="off"), typer.Typer()
    plain.command("peek")(peek)
    plain.command("other")(peek)
    root.add_typer(plain, name="plain")
    tool = root.find("plain.peek")
    assert tool is not None and root._state.effective_policy(tool) == "off"


def test_command_of_the_same_name_in_the_outer_app() -> None:
    """On the Typer path, a command is not mistaken for another one of the same name."""
    root = Tooli("root")
    root.command("peek")(lambda: "public")
    vault = make_strict()

    @vault.callback()
    def main(level: int = 1) -> None: ...

    root.add_typer(vault, name="vault")
    assert invoke(root, "vault", "--level", "2", "peek", "--json").exit_code == 30
    assert invoke(root, "vault", "peek", mode="text").exit_code == 30
    assert invoke(root, "peek", "--json").exit_code == 0


def test_merged_command_that_replaces_another_one() -> None:
    """The rules belong to the command that runs, not to the one that it replaces."""
    root, weak = Tooli("root"), Tooli()
    weak.command("peek")(lambda: "public")
    strict = Tooli(security_policy="strict")
    strict.command("peek")(peek)
    for app in (weak, strict):
        root.add_typer(app)
    assert codes(root, "peek") == {"E2002"}


def test_same_levels_for_every_way_to_reach_a_tool() -> None:
    root, name = nested_twice()
    (listed,) = [tool for tool in root.catalog if tool.key == name]
    found = root.find(name)
    assert found is not None
    assert listed.guard.policy == found.guard.policy == "strict"


def test_policies_are_ordered_by_name() -> None:
    """`effective_policy` compares the names."""
    assert sorted(["strict", "off", "standard"]) == ["off", "standard", "strict"]
    state = AppState("app", {})
    tool = Tool("app", (), "app", (), peek, (), frozenset())
    for policy in ("off", "standard", "strict"):
        state.policy = policy
        assert state.effective_policy(tool) == policy
        guarded = tool.replace(guard=Guard(policy="strict"))
        assert state.effective_policy(guarded) == "strict"


# ------------------------------------------------------------------ permissions and stages


def test_permissions_of_each_path() -> None:
    leaf, root = Tooli("leaf"), Tooli("root")
    leaf.command("go", capabilities=["fs:read", "net:read"])(lambda: None)
    leaf.command("stay")(lambda: None)
    for name, permissions in (("files", ["fs:read"]), ("all", ["fs:read", "net:read"])):
        group = Tooli(name, permissions=permissions)
        group.add_typer(leaf)
        root.add_typer(group)
    with pytest.raises(DefinitionError, match="net:read"):
        root.find("files.leaf.go")
    go, stay = root.find("all.leaf.go"), root.find("files.leaf.stay")
    assert go is not None and go.guard.app_permissions == (("fs:read", "net:read"),)
    assert stay is not None and stay.guard.app_permissions == (("fs:read",),)


def test_stages_of_each_path() -> None:
    seen: list[str] = []
    leaf, root = Tooli("leaf"), Tooli("root")
    leaf.command("go")(lambda: None)
    leaf.command("stay")(lambda: None)
    for name in ("a", "b"):
        group = Tooli(name)

        @group.use
        def log(call: Call, name: str = name) -> Any:
            seen.append(name)
            return (yield call)

        group.add_typer(leaf)
        root.add_typer(group)
    assert root.call("a.leaf.go").ok
    assert root.call("b.leaf.go").ok
    assert seen == ["a", "b"]


def test_keywords_of_one_place_do_not_change_another_place() -> None:
    leaf, root = make_strict(policy="standard"), Tooli("root")
    root.add_typer(leaf, name="one", callback=lambda: None, help="One.", hidden=True)
    root.add_typer(leaf, name="two", help="Two.")
    groups = root.tree().groups
    assert [groups[name].help for name in ("one", "two")] == ["One.", "Two."]
    assert [groups[name].hidden for name in ("one", "two")] == [True, False]
    assert groups["one"].callback is not None
    assert groups["two"].callback is None and groups["two"].typer_reason is None


# ------------------------------------------------------------------ a plain Typer as the root

PLAIN_ROOT = """
import typer
from tooli import Tooli
from tooli.annotations import Destructive

vault = Tooli("vault", security_policy="{policy}", permissions=["fs:read"])

@vault.command()
def peek() -> str:
    print("RAN")

@vault.command(capabilities=["net:read"], auth=[])
def send(to: str = "x") -> str:
    print("RAN")

@vault.command(auth=[])
def other() -> str:
    print("RAN")

middle = Tooli("middle", security_policy="{outer}")
middle.add_typer(vault, name="vault")
root = typer.Typer()
root.add_typer(middle, name="middle")
root.command("own")(lambda: None)
root()
"""


@pytest.mark.parametrize(
    ("policies", "command", "env", "runs"),
    [
        (("strict", "standard"), "peek", {}, False),
        (("standard", "strict"), "peek", {}, False),
        (("standard", "standard"), "peek", {"TOOLI_SECURITY_POLICY": "strict"}, False),
        (("standard", "standard"), "send", {}, False),  # its definition is invalid
        (("strict", "strict"), "other", {}, True),
        (("standard", "standard"), "peek", {}, True),
    ],
)
def test_below_a_plain_typer(
    tmp_path: Path, policies: tuple[str, str], command: str, env: dict[str, str], runs: bool
) -> None:
    script = tmp_path / "plain.py"
    script.write_text(PLAIN_ROOT.format(policy=policies[0], outer=policies[1]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script, "middle", "vault", command],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        cwd=tmp_path,
    )
    assert ("RAN" in done.stdout) is runs, done.stderr
    assert (done.returncode == 0) is runs


# ------------------------------------------------------------------ `apps: NAME` in a file


def write_settings(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (folder / ".tooli.yaml").write_text(f"apps:\n  vault:\n    {text}\n")
    monkeypatch.chdir(folder)


def make_nested(policy: str = "standard") -> Tooli:
    root, middle = Tooli("root"), typer.Typer()
    vault = make_strict(policy=policy)
    vault.command("drop", annotations=Destructive)(lambda: "dropped")
    middle.add_typer(vault, name="v")
    root.add_typer(middle, name="middle")
    root.command("own")(peek)
    return root


@pytest.mark.parametrize("value", ["strict", "no-such-policy"])
def test_settings_of_an_app_apply_below_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    write_settings(tmp_path, monkeypatch, f"security_policy: {value}")
    assert codes(make_nested(), "middle.v.peek") == {"E2002"}
    assert codes(make_nested("off"), "middle.v.peek") == {"E2002"}
    assert codes(make_nested(), "own") == {None}


def test_settings_of_an_app_cannot_loosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_settings(tmp_path, monkeypatch, "security_policy: off")
    assert codes(make_nested("strict"), "middle.v.peek") == {"E2002"}


def test_human_in_the_loop_of_an_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_settings(tmp_path, monkeypatch, "human_in_the_loop: true")
    app = make_nested()
    for _ in range(2):  # the second call uses the cached tool
        error = app.options(yes=True).call("middle.v.drop").error
        assert error is not None and error.code == "E2101"
        error = app.call("middle.v.drop").error
        assert error is not None and error.code == "E2101"
    settings = {"TOOLI_CONFIG": "on"}
    done = invoke(make_nested(), "middle", "v", "drop", "--yes", mode="json", env=settings)
    assert done.envelope["error"]["code"] == "E2101"
    assert codes(make_nested(), "middle.v.peek") == {None}


def test_isolation_of_an_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tooli.stages.isolation.detect_sandbox_support",
        lambda: SandboxSupport(missing=("no kernel support",)),
    )
    monkeypatch.setattr("tooli.stages.isolation._make_bubblewrap", lambda *_: None)
    write_settings(tmp_path, monkeypatch, "isolation: required")
    app = make_nested()
    error = app.call("middle.v.peek").error
    assert error is not None and error.code == "E2006"
    assert app.call("own").ok
    monkeypatch.setenv("TOOLI_ISOLATION", "required")
    write_settings(tmp_path, monkeypatch, "isolation: wanted")
    error = make_nested().call("middle.v.peek").error
    assert error is not None and error.code == "E2006"
