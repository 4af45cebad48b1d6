"""Paths that Python needs in a sandbox: modules, packages, archives, programs, certificates."""

from __future__ import annotations

import os
import sys
import types
import zipfile
from pathlib import Path

import pytest

from tooli.execution.sandbox import runtime_paths

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
PRIVATE_KEY = "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"


def test_programs_are_executables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "data").write_text("text")
    (tmp_path / "tool.exe").write_text("#!/bin/sh\n")
    (tmp_path / "broken").symlink_to(tmp_path / "missing")
    for name in ("script", "data", "tool.exe"):
        (tmp_path / name).chmod(0o755)
    with os.scandir(tmp_path) as entries:
        found = {entry.name: runtime_paths._is_program(entry) for entry in entries}
    assert found == {"script": True, "data": False, "tool.exe": False, "broken": False}


def test_program_that_disappears_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "gone").write_text("#!/bin/sh\n")
    (tmp_path / "gone").chmod(0o755)
    with os.scandir(tmp_path) as entries:
        (entry,) = entries
    assert entry.is_file()
    (tmp_path / "gone").unlink()
    assert runtime_paths._is_program(entry) is False


def test_certificates_of_variables_are_found_and_keys_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "certs"
    folder.mkdir()
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    (folder / "one.pem").write_text(CERTIFICATE)
    (folder / "key.pem").write_text(CERTIFICATE + PRIVATE_KEY)
    (folder / "text.pem").write_text("text")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", f"{folder}{os.pathsep}/etc/ssl/certs{os.pathsep}")
    found = list(runtime_paths.find_certificates())
    assert found == [str(tmp_path / "ca.pem"), str(folder / "one.pem")]


def test_no_certificates_without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    assert list(runtime_paths.find_certificates()) == []


def test_missing_large_and_unreadable_certificates_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = tmp_path / "large.pem"
    large.write_text(CERTIFICATE)
    assert not runtime_paths._is_certificate(str(tmp_path / "missing.pem"))
    assert not runtime_paths._is_certificate(str(tmp_path))
    monkeypatch.setattr(runtime_paths, "_MAX_CERTIFICATE_BYTES", 3)
    assert not runtime_paths._is_certificate(str(large))

    def fail(*_: object) -> bytes:
        raise PermissionError

    monkeypatch.setattr(runtime_paths, "_MAX_CERTIFICATE_BYTES", 1 << 20)
    monkeypatch.setattr(runtime_paths, "_read_head", fail)
    assert not runtime_paths._is_certificate(str(large))


def make_project(root: Path) -> None:
    """Create a folder with modules, packages and other files."""
    (root / "module.py").write_text("")
    (root / "secret.txt").write_text("secret")
    (root / "__pycache__").mkdir()
    (root / "dist.dist-info").mkdir()
    code = root / "code"
    (code / "inner").mkdir(parents=True)
    (code / "__pycache__").mkdir()
    for name in ("__init__.py", "a.py", "inner/__init__.py"):
        (code / name).write_text("")
    mixed = root / "mixed"
    (mixed / "data").mkdir(parents=True)
    (mixed / "not-a-package").mkdir()
    for name in ("__init__.py", "data/table.csv", "notes.txt"):
        (mixed / name).write_text("")
    (mixed / "link.py").symlink_to(root / "module.py")
    (root / "folder").mkdir()


def test_modules_and_packages_of_a_project_are_found(tmp_path: Path) -> None:
    make_project(tmp_path)
    files, packages = runtime_paths._scan_path_entry(str(tmp_path))
    assert {Path(file).name for file in files} == {"module.py", "__pycache__", "dist.dist-info"}
    assert {Path(package).name for package in packages} == {"code", "mixed"}


def test_package_of_code_is_readable_as_a_whole(tmp_path: Path) -> None:
    make_project(tmp_path)
    assert runtime_paths._scan_package(str(tmp_path / "code")) == ([str(tmp_path / "code")], True)


def test_only_code_of_a_mixed_package_is_readable(tmp_path: Path) -> None:
    make_project(tmp_path)
    paths, is_all_code = runtime_paths._scan_package(str(tmp_path / "mixed"))
    assert sorted(Path(path).name for path in paths) == ["__init__.py"]
    assert not is_all_code
    assert runtime_paths._scan_package(str(tmp_path / "mixed" / "data")) == ([], False)
    assert runtime_paths._scan_package(str(tmp_path / "missing")) == ([], False)


def test_search_of_a_package_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "package"
    paths = [folder, folder / "a", folder / "a" / "b"]
    for path in paths:
        path.mkdir()
        (path / "__init__.py").touch()
    files = [str(path / "__init__.py") for path in paths]
    assert runtime_paths._scan_package(str(folder)) == ([str(folder)], True)
    monkeypatch.setattr(runtime_paths, "_MAX_PACKAGE_DEPTH", 1)
    assert runtime_paths._scan_package(str(folder)) == (files[:2], False)
    monkeypatch.setattr(runtime_paths, "_MAX_PACKAGE_ENTRIES", 1)
    assert not runtime_paths._scan_package(str(folder))[1]
    monkeypatch.setattr(runtime_paths, "_MAX_FOLDER_ENTRIES", 0)
    assert runtime_paths._scan_path_entry(str(tmp_path)) == ([], [])


def test_linked_package_that_is_imported_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "elsewhere" / "package"
    target.mkdir(parents=True)
    (target / "__init__.py").touch()
    (tmp_path / "linked").symlink_to(target)
    module = types.ModuleType("linked")
    module.__path__ = [str(tmp_path / "linked")]
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert str(target) not in runtime_paths.find_module_paths().code
    monkeypatch.setitem(sys.modules, "linked", module)
    assert str(target) in runtime_paths.find_module_paths().code


def test_only_archives_with_modules_are_readable(tmp_path: Path) -> None:
    for name, member in (("code.zip", "module.py"), ("data.zip", "table.csv")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(member, "")
    (tmp_path / "text.zip").write_text("no archive")
    found = {
        name: runtime_paths._scan_path_entry(str(tmp_path / name))
        for name in ("code.zip", "data.zip", "text.zip")
    }
    assert found["code.zip"] == ([str(tmp_path / "code.zip")], [])
    assert found["data.zip"] == found["text.zip"] == ([], [])


def test_module_paths_follow_sys_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_project(tmp_path)
    installed = tmp_path / "site-packages"
    installed.mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(installed), os.path.dirname(os.__file__)])
    found = runtime_paths.find_module_paths()
    assert {str(tmp_path / "module.py"), str(tmp_path / "code")} <= set(found.code)
    assert str(installed) in found.system
    assert str(tmp_path / "mixed") in found.listed_dirs
    assert str(tmp_path / "secret.txt") not in (*found.system, *found.code)


def test_pyvenv_cfg_is_readable_in_a_virtual_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for prefix, expected in (("/venv", True), (sys.base_prefix, False)):
        monkeypatch.setattr(sys, "prefix", prefix)
        found = runtime_paths.find_module_paths()
        assert (os.path.join(prefix, "pyvenv.cfg") in found.system) is expected


def test_warming_import_caches_imports_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, object()])
    runtime_paths.warm_import_caches()
    assert "tooli_nonexistent_module" not in sys.modules
