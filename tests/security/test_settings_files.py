"""Settings files that cannot be read, or that are made to take long."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tooli.config import config_files
from tooli.config.file_reader import UnreadableConfig, read_toml
from tooli.config.layers import Settings, resolve_settings
from tooli.core import may_exist

posix_only = pytest.mark.skipif(os.name == "nt", reason="links and modes")


@pytest.fixture
def system_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "etc" / "tooli" / "config.yaml"
    file.parent.parent.mkdir()
    monkeypatch.setattr(config_files, "SYSTEM_CONFIG_PATH", str(file))
    return file


def resolve(folder: Path) -> Settings:
    return resolve_settings("shop", env={}, folder=str(folder))


@posix_only
class TestSystemFile:
    def test_missing_file(self, system_file: Path, tmp_path: Path) -> None:
        assert resolve(tmp_path).faults == []
        system_file.parent.mkdir()
        assert resolve(tmp_path).faults == []
        system_file.parent.rmdir()
        system_file.parent.write_text("a file, not a folder")
        assert resolve(tmp_path).faults == []

    def test_broken_links(self, system_file: Path, tmp_path: Path) -> None:
        system_file.parent.symlink_to(tmp_path / "gone")
        assert "cannot be read" in resolve(tmp_path).faults[0].message
        system_file.parent.unlink()
        system_file.parent.mkdir()
        system_file.symlink_to(tmp_path / "gone")
        assert "cannot be read" in resolve(tmp_path).faults[0].message

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
    @pytest.mark.parametrize(("folder_mode", "file_mode"), [(0o700, 0o644), (0o755, 0o600)])
    def test_unreadable_for_another_user(
        self, tmp_path: Path, folder_mode: int, file_mode: int
    ) -> None:
        folder = tmp_path / "tooli"
        folder.mkdir()
        (folder / "config.yaml").write_text("security_policy: strict\n")
        (folder / "config.yaml").chmod(file_mode)
        folder.chmod(folder_mode)
        code = f"""
import os
from tooli.cli import process
from tooli.config import config_files
from tooli.config.layers import resolve_settings
path = config_files.SYSTEM_CONFIG_PATH = process.SYSTEM_CONFIG_PATH = "tooli/config.yaml"
os.environ.clear()
os.chdir({str(tmp_path)!r})
os.setuid(65534)
assert process._has_config_file()
print(*resolve_settings("shop", env={{}}, folder="/").faults)
"""
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
        )
        assert "cannot be read: Permission denied" in done.stdout, done.stderr

    def test_one_system_call_without_the_folder(
        self, system_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls: list[str] = []
        real = os.lstat
        monkeypatch.setattr(os, "lstat", lambda path: (calls.append(path), real(path))[1])
        assert not may_exist(str(system_file))
        assert calls == [str(system_file.parent)]


class TestLargeTables:
    @pytest.mark.parametrize(
        "text",
        [
            "[tool.tooli]\nx" + ".a" * 100_000 + " = 1\n",
            "[tool.tooli]\n'x'" + ' . "a"' * 30_000 + " = 1\n",
            '[tool.tooli]\n"x"' + '."\\""' * 30_000 + " = 1\n",
            "[tool.tooli.x" + ".a" * 100_000 + "]\n",
            "[[tool.tooli.x" + ".a" * 100_000 + "]]\n",
            "[tool.tooli]\ny = {z = 1, x" + ".a" * 100_000 + " = 1}\n",
        ],
    )
    def test_long_key(self, text: str) -> None:
        """The TOML library would need minutes."""
        with pytest.raises(UnreadableConfig, match="parts"):
            read_toml(text)

    def test_many_keys(self) -> None:
        lines = "".join([f"k{i} = 1\n" for i in range(9_000)])
        section = read_toml(f"[tool.tooli]\n{lines}")
        assert section.entries["k8999"].line == 9_001
        with pytest.raises(UnreadableConfig, match="too many"):
            read_toml(f"[tool.tooli]\n{lines}" + lines.replace("k", "m"))

    def test_lines_are_searched_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from tooli.config import file_reader

        split: list[str] = []
        real = file_reader._split_key
        monkeypatch.setattr(
            file_reader, "_split_key", lambda key: (split.append(key), real(key))[1]
        )
        read_toml("[tool.tooli]\n" + "".join([f"k{i} = 1\n" for i in range(100)]))
        assert len(split) == 101

    def test_large_pyproject(self, tmp_path: Path, system_file: Path) -> None:
        file = tmp_path / "pyproject.toml"
        file.write_text("[tool.tooli]\ntimeout = 3\n#" + "x" * (1 << 18))
        assert "256 KiB" in resolve(tmp_path).faults[0].message

    def test_similar_names_are_searched_for_the_first_faults(
        self, tmp_path: Path, system_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from tooli.config import layers

        searched: list[str] = []

        def did_you_mean(name: str, known: tuple[str, ...]) -> str:
            searched.append(name)
            return ""

        monkeypatch.setattr(layers, "did_you_mean", did_you_mean)
        lines = "".join([f"k{i}: 1\n" for i in range(2_000)])
        (tmp_path / ".tooli.yaml").write_text(lines)
        assert len(resolve(tmp_path).faults) == 2_000
        assert len(searched) < 100

    def test_dots_in_values(self) -> None:
        text = (
            "[tool.tooli]\ntimeout = 3\n[x]\ny = ['1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18']"
        )
        assert read_toml(text).entries["timeout"].line == 2


class TestLineEnds:
    @pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x85", "\u2028", "\u2029"])
    @pytest.mark.parametrize("comment", ["# comment", "  # comment", "output: json # comment"])
    def test_comment_hides_no_setting(
        self, tmp_path: Path, system_file: Path, end: str, comment: str
    ) -> None:
        """The setting after the comment applies, or the file is an error."""
        text = f"{comment}{end}security_policy: strict{end}"
        (tmp_path / ".tooli.yaml").write_bytes(text.encode())
        found = resolve(tmp_path)
        assert found.faults or found.get("security_policy") == "strict"

    @pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
    def test_variables(self, tmp_path: Path, system_file: Path, end: str) -> None:
        text = f"# comment{end}TOOLI_SECURITY_POLICY=strict{end}"
        (tmp_path / ".env").write_bytes(text.encode())
        assert resolve(tmp_path).get("security_policy") == "strict"


@posix_only
class TestPaths:
    FOLDER = "a\x1b[31m\u202e\u200b\nFAKE LINE"

    @pytest.mark.parametrize("text", ["tokens: /x\n", "bad: 1\n", "timeout: x\n", "a: [\n"])
    @pytest.mark.parametrize("mode", [0o755, 0o777])
    def test_folder_name_is_escaped(
        self, tmp_path: Path, system_file: Path, text: str, mode: int
    ) -> None:
        folder = tmp_path / self.FOLDER
        folder.mkdir()
        folder.chmod(mode)
        (folder / ".tooli.yaml").write_text(text)
        found = resolve(folder)
        messages = [str(fault) for fault in (*found.faults, *found.ignored)]
        assert messages and all(message.isprintable() for message in messages)
        assert "\\nFAKE LINE" in messages[0]

    def test_folder_above_the_target_of_a_link(self, tmp_path: Path, system_file: Path) -> None:
        """Another user can replace a folder of the real path."""
        shared, home = tmp_path / "shared", tmp_path / "home"
        (shared / "me" / "dot" / "tooli").mkdir(parents=True)
        (shared / "me" / "dot" / "tooli" / "config.yaml").write_text("timeout: 11\n")
        (home / ".config").mkdir(parents=True)
        (tmp_path / "hop").symlink_to("shared/me")
        (home / ".config" / "tooli").symlink_to(tmp_path / "hop" / "dot" / "tooli")
        env = {"HOME": str(home)}
        found = resolve_settings("shop", env=env, folder=str(tmp_path))
        assert (found.get("timeout"), found.ignored) == (11, [])
        shared.chmod(0o777)
        found = resolve_settings("shop", env=env, folder=str(tmp_path))
        assert found.get("timeout") != 11
        assert f"every user can write to the folder {shared}" in found.ignored[0].message

    @pytest.mark.parametrize(
        "text",
        [
            '[tool."\\u0074ooli"]\ntimeout = 3\n',
            '["\\U00000074ool".tooli]\ntimeout = 3\n',
            'tool."too\\u006Ci".timeout = 3\n',
        ],
    )
    def test_escaped_table_name(
        self, tmp_path: Path, system_file: Path, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        from tooli.cli import process

        (tmp_path / "pyproject.toml").write_text(text)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        assert resolve(tmp_path).get("timeout") == 3
        assert process._has_config_file()


@posix_only
@pytest.mark.parametrize("name", [".tooli.yaml", ".env", "pyproject.toml"])
@pytest.mark.parametrize("kind", ["writable", "link", "pipe", "folder link"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_file_that_is_replaced_while_it_is_opened(
    tmp_path: Path,
    system_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: str,
    when: str,
) -> None:
    """What is checked is what is read: the descriptor, whatever the path names by then."""
    texts = {".env": "TOOLI_TIMEOUT={}\n", "pyproject.toml": "[tool.tooli]\ntimeout = {}\n"}
    text = texts.get(name, "timeout: {}\n")
    project, hostile = tmp_path / "project", tmp_path / "hostile"
    for folder, number in ((project, 11), (hostile, 66)):
        folder.mkdir()
        (folder / name).write_text(text.format(number))
    (hostile / name).chmod(0o666)
    file, replaced = project / name, list[str]()

    def replace() -> None:
        replaced.append(kind)
        if kind == "folder link":
            project.rename(tmp_path / "moved")
            project.symlink_to(hostile)
            return
        file.unlink()
        if kind == "link":
            file.symlink_to(hostile / name)
        elif kind == "pipe":
            os.mkfifo(file)
        else:
            (hostile / name).rename(file)

    real = os.open

    def open_and_replace(path: Any, flags: int, *args: Any, **options: Any) -> int:
        is_first = path == str(file) and not replaced
        if is_first and when == "before":
            replace()
        descriptor = real(path, flags, *args, **options)
        if is_first and when == "after":
            replace()
        return descriptor

    monkeypatch.setattr(os, "open", open_and_replace)
    assert resolve(project).get("timeout") in (11, None)
    assert replaced == [kind]
