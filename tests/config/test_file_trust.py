"""Owners, modes and kinds of settings files."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from tooli.config import file_trust
from tooli.config.file_trust import UntrustedFile, open_settings_file

pytestmark = pytest.mark.skipif(os.name == "nt", reason="owners and modes")
OTHER_USER = 12345


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "home" / "tooli" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("output: json\n")
    file.chmod(0o644)
    file.parent.chmod(0o755)
    return file


def check(file: Path, layer: str = "project", trusted: tuple[str, ...] = (), **env: str) -> str:
    """Return why a file is not read; "" if it is read."""
    try:
        os.close(open_settings_file(str(file), layer, trusted, env))
    except UntrustedFile as reason:
        return str(reason)
    return ""


def pretend_owner(monkeypatch: pytest.MonkeyPatch, owner: int, user: int) -> None:
    """Let every open file belong to one user, and the process run as another."""
    real_fstat = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        found = real_fstat(descriptor)
        return os.stat_result((*found[:4], owner, *found[5:]))

    monkeypatch.setattr(os, "fstat", fstat)
    monkeypatch.setattr(os, "geteuid", lambda: user)


@pytest.mark.parametrize("layer", [".env", "project", "user", "system"])
def test_own_file_is_read(file: Path, layer: str) -> None:
    assert check(file, layer) == ""


@pytest.mark.parametrize(
    ("layer", "owner", "user", "sudo", "is_read"),
    [
        ("project", 1000, 1000, "", True),
        ("project", 0, 1000, "", True),
        ("project", 1001, 1000, "", False),
        ("project", 1000, 0, "", False),
        ("project", 1000, 0, "1000", True),
        ("project", 1000, 0, "1001", False),
        ("project", 1000, 0, "x", False),
        ("project", 1001, 1000, "1001", False),
        (".env", 1000, 0, "1000", True),
        ("user", 1000, 0, "1000", False),
        ("user", 0, 1000, "", True),
        ("system", 1001, 1000, "", False),
        ("system", 65534, 1000, "", False),
        ("user", 65534, 1000, "", False),
    ],
)
def test_owner(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    layer: str,
    owner: int,
    user: int,
    sudo: str,
    is_read: bool,
) -> None:
    pretend_owner(monkeypatch, owner, user)
    monkeypatch.setattr(file_trust, "_checked_folders", lambda path, layer: iter(()))
    reason = check(file, layer, SUDO_UID=sudo)
    assert reason == ("" if is_read else f"user {owner} owns it")


@pytest.mark.parametrize("layer", [".env", "project", "user", "system"])
@pytest.mark.parametrize("mode", [0o666, 0o646, 0o602])
def test_file_that_others_can_write(file: Path, layer: str, mode: int) -> None:
    file.chmod(mode)
    assert check(file, layer) == "every user can write to it"


@pytest.mark.parametrize("layer", [".env", "project", "user", "system"])
@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_folder_that_others_can_write(file: Path, layer: str, mode: int) -> None:
    file.parent.chmod(mode)
    assert check(file, layer) == f"every user can write to the folder {file.parent}"


@pytest.mark.parametrize(("mode", "is_read"), [(0o777, False), (0o1777, True)])
def test_folder_above_the_user_file(file: Path, mode: int, is_read: bool) -> None:
    file.parents[1].chmod(mode)
    assert (check(file, "user") == "") is is_read
    assert check(file, "project") == ""


class TestGroups:
    @pytest.fixture(autouse=True)
    def group_can_write(self, file: Path) -> None:
        file.chmod(0o664)

    def set_group(
        self, monkeypatch: pytest.MonkeyPatch, name: str, members: list[str], primary: bool = True
    ) -> None:
        gid = os.getegid() if primary else OTHER_USER
        user = SimpleNamespace(pw_name="ada", pw_gid=gid)
        monkeypatch.setattr(pwd, "getpwuid", lambda uid: user)
        group = SimpleNamespace(gr_name=name, gr_mem=members)
        monkeypatch.setattr(grp, "getgrgid", lambda gid: group)

    @pytest.mark.parametrize("members", [[], ["ada"]])
    def test_private_group(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, members: list[str]
    ) -> None:
        self.set_group(monkeypatch, "ada", members)
        assert check(file) == ""

    @pytest.mark.parametrize(
        ("name", "members", "primary"),
        [("ada", ["eve"], True), ("staff", [], True), ("ada", [], False)],
    )
    def test_shared_group(
        self,
        file: Path,
        monkeypatch: pytest.MonkeyPatch,
        name: str,
        members: list[str],
        primary: bool,
    ) -> None:
        self.set_group(monkeypatch, name, members, primary)
        assert check(file) == f"group {file.stat().st_gid} can write to it"

    def test_unknown_group(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def unknown(gid: int) -> None:
            raise KeyError(gid)

        monkeypatch.setattr(grp, "getgrgid", unknown)
        assert "can write to it" in check(file)

    def test_access_control_list(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.set_group(monkeypatch, "ada", [])
        names = ["system.posix_acl_access"]
        monkeypatch.setattr(file_trust.os, "listxattr", lambda place: names, raising=False)
        assert "can write to it" in check(file)

    def test_no_access_control_lists(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.set_group(monkeypatch, "ada", [])
        monkeypatch.delattr(file_trust.os, "listxattr", raising=False)
        assert check(file) == ""


def test_read_only_file_system(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A volume of Kubernetes has a folder with the mode 0777, but nobody can write there."""
    file.parent.chmod(0o777)
    flags = SimpleNamespace(f_flag=os.ST_RDONLY)
    monkeypatch.setattr(file_trust.os, "statvfs", lambda place: flags)
    assert check(file, "system") == ""


@pytest.mark.parametrize(("layer", "is_read"), [("project", True), ("user", True)])
def test_trusted_dirs(file: Path, layer: str, is_read: bool) -> None:
    file.chmod(0o666)
    for folder in (file.parent, file.parents[2], Path("/")):
        assert check(file, layer, (str(folder),)) == ""
    assert check(file, layer, (str(file.parent) + "x", str(file), "~")) != ""


def test_system_file_cannot_be_exempted(file: Path) -> None:
    file.chmod(0o666)
    assert check(file, "system", ("/",)) != ""


class TestLinks:
    def test_link_out_of_the_folder(self, file: Path, tmp_path: Path) -> None:
        link = tmp_path / "project" / ".tooli.yaml"
        link.parent.mkdir(mode=0o755)
        link.symlink_to(file)
        assert check(link) == "it is a symbolic link to a file outside of its folder"
        assert check(link, trusted=(str(file.parent),)) == ""
        assert check(link, "user") == ""

    def test_link_to_a_folder_that_others_can_write(self, file: Path, tmp_path: Path) -> None:
        link = tmp_path / "link.yaml"
        link.symlink_to(file)
        file.parent.chmod(0o777)
        tmp_path.chmod(0o755)
        for layer in ("project", "user", "system"):
            assert check(link, layer) == f"every user can write to the folder {file.parent}"


@pytest.mark.parametrize("layer", ["project", "user", "system"])
def test_only_regular_files_are_opened(file: Path, layer: str) -> None:
    pipe, folder = file.parent / "pipe.yaml", file.parent / "folder.yaml"
    os.mkfifo(pipe)
    folder.mkdir()
    for path in (pipe, folder):
        with pytest.raises(OSError, match="not a regular file"):
            check(path, layer)


@pytest.mark.parametrize("name", [".env", "pyproject.toml"])
def test_special_file_that_other_programs_read(file: Path, name: str) -> None:
    path = file.parent / name
    layer = ".env" if name == ".env" else "project"
    os.mkfifo(path)
    assert check(path, layer) == "it is a pipe, a socket or a device"
    path.unlink()
    path.symlink_to("/dev/null")
    assert check(path, layer) == "it is a pipe, a socket or a device"


def test_descriptors_are_closed(file: Path) -> None:
    before = os.dup(0)
    os.close(before)
    file.chmod(0o666)
    check(file)
    with pytest.raises(OSError, match="not a regular file"):
        check(file.parent, "user")
    after = os.dup(0)
    os.close(after)
    assert after == before


@pytest.mark.parametrize(
    ("uid_map", "is_read"),
    [("0 0 4294967295\n", False), ("0 1000 1\n", True), ("1000 1000 1\n", True), (None, False)],
)
def test_unmapped_owner_of_the_system_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, uid_map: str | None, is_read: bool
) -> None:
    map_file = tmp_path / "uid_map"
    if uid_map is not None:
        map_file.write_text(uid_map)
    monkeypatch.setattr(file_trust, "_UID_MAP", str(map_file))
    pretend_owner(monkeypatch, 65534, 0)
    assert (check(file, "system") == "") is is_read


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("name", [".tooli.yaml", "pyproject.toml", ".env", "config.yaml"])
@pytest.mark.parametrize("kind", ["file", "unreadable", "pipe", "folder", "broken link"])
def test_anything_of_another_user_is_ignored(tmp_path: Path, name: str, kind: str) -> None:
    """It is not an error, with which another user could stop every call."""
    path = tmp_path / name
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "broken link":
        path.symlink_to("gone")
    else:
        path.touch(0o000 if kind == "unreadable" else 0o644)
    os.lchown(path, OTHER_USER, OTHER_USER)
    layer = {".env": ".env", "config.yaml": "user"}.get(name, "project")
    assert check(path, layer) == f"user {OTHER_USER} owns it"
    if kind == "file":
        assert check(path, layer, (str(tmp_path),)) == ""
