"""Declared capabilities, permissions of apps, and the access that both allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tooli import Tooli
from tooli.core.call import Options
from tooli.core.declared_capabilities import (
    CAPABILITIES,
    AllowedAccess,
    find_disallowed,
    is_under_any,
    read_app_permissions,
    resolve_access,
)
from tooli.errors import DefinitionError
from tooli.policy.allowed_access import UNRESTRICTED, resolve_allowed_access


def declare(capabilities: Any, permissions: Any = None) -> Any:
    app = Tooli("x", permissions=permissions)
    app.command("one", capabilities=capabilities)(lambda: None)
    app.command("two")(lambda: None)
    return app.find("one")


class TestCapabilities:
    @pytest.mark.parametrize("capability", [*CAPABILITIES, "fs:read:./data", "fs:write:/tmp/x:y"])
    def test_valid_capability(self, capability: str) -> None:
        assert declare([capability]).guard.capabilities == (capability,)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (["fs:raed"], "did you mean 'fs:read'"),
            (["fs"], r"'fs' is not a capability; use one of fs:read, fs:write, fs:delete \("),
            (["network"], r"use one of net:read, net:write \("),
            (["net:connect"], r"use one of net:read, net:write \("),
            (["write"], r"use one of fs:write, net:write, env:write \("),
            (["zzz"], r"use one of fs:read, .*, none \("),
            (["fs:wirte:/srv"], "did you mean 'fs:write:/srv'"),
            (["net:raed:/srv"], "did you mean 'net:read'"),
            (["FS:READ"], "did you mean 'fs:read'"),
            (["net:read:example.org"], "only fs:read, fs:write, fs:delete take a path"),
            (["fs:read:"], "take a path"),
            ([3], "a capability must be a string"),
            (["none", "fs:read"], "'none' cannot be combined"),
            ("fs:read", "a list of capabilities"),
            ({"fs": "read"}, "a list of capabilities"),
            ([], r"write \['none'\]"),
        ],
    )
    def test_invalid_capabilities(self, value: Any, message: str) -> None:
        with pytest.raises(DefinitionError, match=message):
            declare(value)


class TestAppPermissions:
    @pytest.mark.parametrize(
        ("value", "capabilities"),
        [
            (["fs:read", "net:read"], {"fs:read", "net:read"}),
            ({"fs": "read"}, {"fs:read"}),
            (
                {"filesystem": "read-write", "network": "none"},
                {"fs:read", "fs:write", "fs:delete"},
            ),
            ({"network": "read", "process": "all"}, {"net:read", "proc:spawn"}),
            ({"state": "write", "environment": "read"}, {"state:mutate", "env:read"}),
            ({"fs": "none"}, {"none"}),
            ({}, {"none"}),
        ],
    )
    def test_read_app_permissions(self, value: Any, capabilities: set[str]) -> None:
        assert set(read_app_permissions(value)) == capabilities

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ({"fileystem": "read"}, "did you mean 'filesystem'"),
            ({"fs": "raed"}, "did you mean 'read'"),
            ({"fs": True}, "must be one of none, read"),
            (["fs:reed"], "did you mean 'fs:read'"),
            ("fs:read", "a list of capabilities"),
        ],
    )
    def test_invalid_permissions(self, value: Any, message: str) -> None:
        with pytest.raises(DefinitionError, match=message):
            Tooli("x", permissions=value)

    def test_command_may_declare_less(self) -> None:
        tool = declare(["fs:read:./data"], {"fs": "read"})
        assert tool.guard.app_permissions == (("fs:read",),)

    @pytest.mark.parametrize(
        ("capabilities", "permissions"),
        [
            (["net:read"], {"fs": "read-write"}),
            (["fs:read"], ["fs:read:./data"]),
            (["fs:read:./data/../other"], ["fs:read:./data"]),
            (["fs:read:./database"], ["fs:read:./data"]),
            (["fs:write:./data"], ["fs:read:./data"]),
        ],
    )
    def test_command_may_not_declare_more(self, capabilities: list[str], permissions: Any) -> None:
        with pytest.raises(DefinitionError, match="more than the app's permissions= allow"):
            declare(capabilities, permissions)

    def test_capability_none_is_always_allowed(self) -> None:
        assert find_disallowed(["none"], ["none"]) == []

    def test_permissions_apply_to_groups_below(self) -> None:
        top, group = Tooli("top", permissions=["fs:read"]), Tooli("group")
        group.command("go", capabilities=["net:read"])(lambda: None)
        group.command("stay")(lambda: None)
        top.add_typer(group, name="group")
        with pytest.raises(DefinitionError):
            top.find("group.go")
        stay = top.find("group.stay")
        assert stay is not None and stay.guard.app_permissions == (("fs:read",),)

    def test_permissions_of_a_group_apply(self) -> None:
        top, group = Tooli("top"), Tooli("group", permissions=["none"])
        group.command("stay")(lambda: None)
        group.command("go")(lambda: None)
        top.add_typer(group, name="group")
        stay = top.find("group.stay")
        assert stay is not None
        assert len(top.stages_for(stay, Options())) > 1
        assert resolve_allowed_access(stay, top._state) == AllowedAccess()

    def test_symbolic_link_out_of_the_permissions_is_not_allowed(self, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "out").mkdir()
        capabilities = [f"fs:read:{tmp_path}/in/link", f"fs:read:{tmp_path}/in/own"]
        (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
        tool = declare(capabilities, [f"fs:read:{tmp_path}/in"])
        found = resolve_allowed_access(tool, Tooli("x")._state)
        assert found.reads == (f"{tmp_path.resolve()}/in/own",)

    def test_work_dir_does_not_move_the_permissions(self, tmp_path: Path) -> None:
        """A path of a command is relative to `work_dir`; a path of the permissions is not."""
        tool = declare(["fs:read:./data"], [f"fs:read:{Path.cwd()}"])
        state = Tooli("x")._state
        state.security_settings = {"work_dir": str(tmp_path)}
        found = resolve_allowed_access(tool, state)
        assert found.reads == ()


class TestAllowedAccess:
    def test_paths_are_resolved(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        found = resolve_access(["fs:read:link", "fs:write", "proc:spawn"], str(tmp_path))
        assert found.reads == (str((tmp_path / "real").resolve()),)
        assert (found.writes, found.deletes) == (None, ())
        assert (found.spawns, found.net) == (True, False)

    @pytest.mark.parametrize("paths", [["fs:read", "fs:read:a"], ["fs:read:a", "fs:read"]])
    def test_capability_without_a_path_includes_all_paths(self, paths: list[str]) -> None:
        assert resolve_access(paths).reads is None

    def test_access_is_unrestricted_without_declared_capabilities(self) -> None:
        app = Tooli("x")
        app.command("one")(lambda: None)
        tool = app.find("one")
        assert tool is not None
        assert resolve_allowed_access(tool, app._state) == UNRESTRICTED
        assert len(app.stages_for(tool, Options())) == 1

    def test_every_list_of_paths_must_allow_access(self, tmp_path: Path) -> None:
        app = Tooli("x")
        app.command("one", capabilities=["fs:read:a/b", "fs:read:c", "net:read"])(lambda: None)
        app.command("two")(lambda: None)
        root = str(tmp_path.resolve())
        app._state.security_settings = {
            "work_dir": root,
            "allow_paths": (("a", "c"), ("a", f"{root}/c/d")),
            "deny_paths": ("a/b/private",),
        }
        tool = app.find("one")
        assert tool is not None
        found = resolve_allowed_access(tool, app._state)
        assert set(found.reads or ()) == {f"{root}/a/b", f"{root}/c/d"}
        assert found.denied == (f"{root}/a/b/private",)
        assert (found.writes, found.net) == ((), True)


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("/a", "/a", True),
        ("/a/b", "/a", True),
        ("/a/b", "/a/", True),
        ("/ab", "/a", False),
        ("/", "/a", False),
        ("/a", "/", True),
    ],
)
def test_is_under_any_compares_whole_path_segments(path: str, folder: str, expected: bool) -> None:
    assert is_under_any(path, (folder,)) is expected
