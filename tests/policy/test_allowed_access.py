"""What a call may access: capabilities, permissions and settings."""

from __future__ import annotations

import os
from pathlib import Path

from tests.stages.stage_calls import make_call, make_state

from tooli import Tooli
from tooli.policy.allowed_access import (
    UNRESTRICTED,
    find_link_folders,
    intersect,
    resolve_allowed_access,
    resolve_bounds,
    resolve_declared,
    resolve_setting_path,
)


def test_access_is_unrestricted_by_default() -> None:
    assert resolve_allowed_access(make_call().tool, make_state()) == UNRESTRICTED


def test_access_is_limited_to_declared_capabilities(tmp_path: Path) -> None:
    tool = make_call(capabilities=[f"fs:read:{tmp_path}", "net:read"]).tool
    declared = resolve_declared(tool, make_state())
    assert declared is not None
    assert declared.reads == (str(tmp_path),)
    assert declared.net
    assert not declared.spawns
    assert resolve_allowed_access(tool, make_state()) == declared


def test_settings_restrict_a_tool_without_capabilities(tmp_path: Path) -> None:
    state = make_state(allow_paths=((str(tmp_path),),))
    allowed = resolve_allowed_access(make_call().tool, state)
    assert allowed == resolve_bounds(state)
    assert (allowed.reads, allowed.net) == ((str(tmp_path),), True)


def test_settings_restrict_capabilities(tmp_path: Path) -> None:
    tool = make_call(capabilities=[f"fs:read:{tmp_path}"]).tool
    state = make_state(allow_paths=((str(tmp_path / "a"),),), deny_paths=(str(tmp_path / "a/b"),))
    allowed = resolve_allowed_access(tool, state)
    assert allowed.reads == (str(tmp_path / "a"),)
    assert allowed.denied == (str(tmp_path / "a/b"),)
    assert not allowed.net


def test_path_must_be_in_every_list(tmp_path: Path) -> None:
    bounds = resolve_bounds(
        make_state(allow_paths=((str(tmp_path), "/usr"), (str(tmp_path / "a"),)))
    )
    assert bounds is not None
    assert bounds.reads == (str(tmp_path / "a"),)


def test_paths_are_relative_to_the_work_dir(tmp_path: Path) -> None:
    bounds = resolve_bounds(make_state(work_dir=str(tmp_path), deny_paths=("secret",)))
    assert bounds is not None
    assert bounds.denied == (str(tmp_path / "secret"),)
    assert bounds.reads is None


def test_setting_path_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/usr")
    assert resolve_setting_path(str(tmp_path / "link")) == os.path.realpath("/usr")
    assert resolve_setting_path("~") == os.path.realpath(os.path.expanduser("~"))


def test_intersection_with_unrestricted_changes_nothing(tmp_path: Path) -> None:
    other = UNRESTRICTED.replace(reads=(str(tmp_path),), net=False)
    assert intersect(UNRESTRICTED, other) == other
    assert intersect(other, UNRESTRICTED) == other


def test_link_folders_of_all_isolated_commands(tmp_path: Path) -> None:
    isolation = "required"
    app, inner = Tooli("app"), Tooli("inner", permissions=[f"fs:write:{tmp_path}/permitted"])
    app.add_typer(inner)
    app.command("a", isolation=isolation, capabilities=[f"fs:write:{tmp_path}/a"])(str)
    app.command("b", capabilities=[f"fs:write:{tmp_path}/b"])(str)
    app.command("c", isolation=isolation, capabilities=["fs:write", "fs:delete:/usr"])(str)
    app.lazy_command("missing:d", isolation=isolation, capabilities=[f"fs:write:{tmp_path}/d"])
    inner.command("e", isolation=isolation)(str)
    for state in (app._state, inner._state):
        found = [os.path.basename(folder) for folder in find_link_folders(state)]
        assert sorted(found) == ["a", "d", "permitted"]
    app._state.security_settings = {"isolation": "wanted"}
    assert f"{tmp_path}/b" in find_link_folders(app._state)
