"""Hostile project folders: their files cannot decide about security."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import tempfile
from pathlib import Path

import pytest
from tests.integration.app_process import ProcessResult, environment, read_envelope, run

APP = """
import os
from tooli import Context, Tooli
from tooli.annotations import Destructive

app = Tooli("shop", version="1.0")


@app.command(auth=["admin"])
def whoami(ctx: Context) -> dict[str, object]:
    return {"principal": ctx.caller.principal, "folder": os.getcwd()}


@app.command()
def stock() -> str:
    return os.getcwd()


@app.command(capabilities=["net:read"])
def peek(path: str) -> str:
    return open(path).read()


@app.command(annotations=Destructive)
def order(item: str) -> str:
    return item


if __name__ == "__main__":
    app()
"""
POSIX = pytest.mark.skipif(os.name == "nt", reason="owners and modes")
AS_ROOT = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)
OTHER_USER = 12345


class Folders:
    """An app, the home folder of its user, and a project that an attacker has written."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.app = root / "shop.py"
        self.home = root / "home"
        self.project = root / "project"
        self.user_file = self.home / ".config" / "tooli" / "config.yaml"
        self.user_file.parent.mkdir(parents=True)
        (self.project / ".git").mkdir(parents=True)
        self.app.write_text(APP)

    def env(self, **more: str | None) -> dict[str, str]:
        state = str(self.root / "state")
        return environment(**{"HOME": str(self.home), "TOOLI_STATE_DIR": state, **more})

    def write(self, text: str, name: str = ".tooli.yaml") -> Path:
        file = self.project / name
        file.write_text(text)
        return file

    def write_setting(self, kind: str, name: str, value: str) -> Path:
        if kind == ".env":
            return self.write(f"TOOLI_{name.upper()}={value}\n", ".env")
        if kind == "pyproject.toml":
            return self.write(f"[tool.tooli]\n{name} = {json.dumps(value)}\n", kind)
        if kind == "section":
            return self.write(f"apps:\n  shop:\n    {name}: {value}\n")
        return self.write(f"{name}: {value}\n")

    def run(self, *argv: str, stdin: bytes = b"", **variables: str | None) -> ProcessResult:
        return run(self.app, *argv, stdin=stdin, cwd=self.project, env=self.env(**variables))


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def write_tokens(file: Path, token: str, principal: str) -> str:
    file.write_text(f"{hashlib.sha256(token.encode()).hexdigest()} {principal} admin\n")
    return str(file)


KINDS = pytest.mark.parametrize("kind", [".tooli.yaml", "section", "pyproject.toml", ".env"])
TRUSTED_SETTINGS = {
    "work_dir": "/",
    "token_key": "/tmp/key.pem",
    "token_issuer": "eve",
    "token_audience": "eve",
    "tokens": "/tmp/tokens",
    "rate_limit": "1000000/second",
    "audit_log": "~/.bashrc",
    "store": "postgresql://eve@127.0.0.1:1/eve",
    "trusted_dirs": "/",
}


class TestTrustedSettings:
    @KINDS
    def test_project_cannot_replace_tokens(self, folders: Folders, kind: str) -> None:
        """The attacker's token is refused, and the operator's token is accepted."""
        operator = write_tokens(folders.root / "tokens", "good", "operator")
        attacker = write_tokens(folders.project / "tokens", "evil", "eve")
        folders.write_setting(kind, "tokens", attacker)
        (folders.root / "token").write_text("good")
        (folders.root / "evil").write_text("evil")
        env = {"TOOLI_TOKENS": operator, "TOOLI_SECURITY_POLICY": "strict"}
        done = folders.run("whoami", "--json", TOOLI_TOKEN_FILE=str(folders.root / "token"), **env)
        assert read_envelope(done.out)["result"]["principal"] == "operator"
        done = folders.run("whoami", "--json", TOOLI_TOKEN_FILE=str(folders.root / "evil"), **env)
        assert read_envelope(done.out)["error"]["code"] == "E2004"

    @KINDS
    def test_project_cannot_add_tokens(self, folders: Folders, kind: str) -> None:
        attacker = write_tokens(folders.project / "tokens", "evil", "eve")
        folders.write_setting(kind, "tokens", attacker)
        (folders.root / "evil").write_text("evil")
        env = {"TOOLI_SECURITY_POLICY": "strict", "TOOLI_TOKEN_FILE": str(folders.root / "evil")}
        done = folders.run("whoami", "--json", **env)
        assert read_envelope(done.out)["error"]["code"] == "E2001"

    @KINDS
    def test_project_cannot_append_to_files(self, folders: Folders, kind: str) -> None:
        (folders.home / ".bashrc").write_text("")
        folders.write_setting(kind, "audit_log", "~/.bashrc")
        done = folders.run("order", "x", "--yes", "--json", TOOLI_SECURITY_POLICY="standard")
        assert done.code == 0
        assert (folders.home / ".bashrc").read_text() == ""

    @KINDS
    def test_project_cannot_change_the_working_directory(self, folders: Folders, kind: str) -> None:
        folders.write_setting(kind, "work_dir", "/")
        done = folders.run("stock", "--json")
        assert read_envelope(done.out)["result"] == str(folders.project)

    @KINDS
    def test_project_cannot_choose_the_store(self, folders: Folders, kind: str) -> None:
        """The password in the environment is not sent to the database of the attacker."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            port = listener.getsockname()[1]
            folders.write_setting(kind, "store", f"postgresql://eve@127.0.0.1:{port}/eve")
            argv = ("order", "x", "--yes", "--json", "--idempotency-key", "k")
            done = folders.run(*argv, PGPASSWORD="secret", PGCONNECT_TIMEOUT="2")
            assert done.code == 0
            with pytest.raises(BlockingIOError):
                listener.accept()

    @pytest.mark.parametrize(
        ("kind", "name"),
        [
            *[(".tooli.yaml", name) for name in TRUSTED_SETTINGS],
            *[(kind, "tokens") for kind in ("section", "pyproject.toml", ".env")],
        ],
    )
    def test_ignored_setting_is_reported(self, folders: Folders, kind: str, name: str) -> None:
        file = folders.write_setting(kind, name, TRUSTED_SETTINGS[name])
        done = folders.run("stock", "--json")
        (warning,) = read_envelope(done.out)["meta"]["warnings"]
        shown = f"TOOLI_{name.upper()}" if kind == ".env" else name
        assert warning.startswith(f"{file}:")
        assert f"{shown} is ignored" in warning
        assert str(folders.user_file) in warning
        assert f"TOOLI_{name.upper()}" in warning
        text = folders.run("stock", "--text").err.decode()
        assert text.count("is ignored") == 1
        for argv in (("detect-context", "-v"), ("config", "show", "--origin")):
            shown = read_envelope(folders.run(*argv, "--json").out)["result"]
            assert shown["ignored"][0].startswith(f"{file.name}:")
        assert name not in read_envelope(folders.run("config", "show", "--json").out)["result"]

    def test_project_cannot_hide_the_warning(self, folders: Folders) -> None:
        folders.write("quiet: true\ntokens: /x\n")
        assert b"tokens is ignored" in folders.run("stock", "--text").err
        assert folders.run("stock", "--text", "--quiet").err == b""
        assert folders.run("stock", "--text", TOOLI_QUIET="1").err == b""

    def test_warning_does_not_contain_the_value(self, folders: Folders) -> None:
        folders.write("TOOLI_STORE=postgresql://a:hunter2@h/d\nTOOLI_TOKEN=hunter2\n", ".env")
        for argv in (("stock", "--json"), ("config", "show", "--origin", "--json")):
            done = folders.run(*argv)
            assert b"is ignored" in done.out
            assert b"hunter2" not in done.out + done.err

    @pytest.mark.parametrize(
        "variable",
        [
            *("TOOLI_TOKEN", "TOOLI_TOKEN_FILE", "TOOLI_SEAL_KEY", "TOOLI_STATE_DIR"),
            *("TOOLI_RECORD_CAPABILITIES", "TOOLI_ALLOW_PRIVATE_URLS", "TOOLI_MAX_INPUT"),
            "TOOLI_CONFIG",
        ],
    )
    def test_dotenv_variable_that_is_no_setting_is_reported(
        self, folders: Folders, variable: str
    ) -> None:
        folders.write(f"{variable}=/x\n", ".env")
        env: dict[str, str | None] = {"TOOLI_STATE_DIR": None}
        (warning,) = read_envelope(folders.run("stock", "--json", **env).out)["meta"]["warnings"]
        assert f".env:1: {variable} is ignored" in warning
        env = {"TOOLI_STATE_DIR": None, variable: "1" if variable != "TOOLI_CONFIG" else "on"}
        answer = read_envelope(folders.run("stock", "--json", **env).out)
        assert "is ignored" not in str(answer)

    def test_dotenv_is_not_exported(self, folders: Folders) -> None:
        folders.app.write_text(
            "import os\nfrom tooli import Tooli\napp = Tooli('shop')\n"
            "@app.command()\ndef show() -> dict[str, str]:\n    return dict(os.environ)\n"
            "@app.command()\ndef other() -> None: ...\napp()\n"
        )
        names = ("PGHOST", "PGPASSWORD", "PYTHONPATH", "LD_PRELOAD", "PATH", "HOME", "TOOLI_QUIET")
        folders.write(
            "".join([f"{name}=/evil\n" for name in names[:-1]]) + "TOOLI_QUIET=1\n", ".env"
        )
        found = read_envelope(folders.run("show", "--json").out)["result"]
        assert "/evil" not in found.values()
        assert "TOOLI_QUIET" not in found

    def test_dotenv_does_not_override_the_environment(self, folders: Folders) -> None:
        folders.write("TOOLI_OUTPUT=plain\nTOOLI_TIMEOUT=1000\n", ".env")
        env = {"TOOLI_OUTPUT": "json", "TOOLI_TIMEOUT": "5"}
        shown = read_envelope(folders.run("config", "show", **env).out)["result"]
        assert (shown["output"], shown["timeout"]) == ("json", 5.0)

    def test_python_call_has_the_warning(self, folders: Folders) -> None:
        folders.write("tokens: /x\n")
        script = folders.root / "main.py"
        script.write_text(
            "from shop import app\nfound = app.call('stock')\n"
            "print(found.meta.get('warnings'), found.ok)\n"
        )
        done = run(script, cwd=folders.project, env=folders.env())
        assert b"tokens is ignored" in done.out, done.err
        assert done.out.endswith(b"True\n")


class TestTightening:
    @pytest.mark.parametrize(
        ("user", "project", "name", "expected"),
        [
            ("security_policy: strict", "security_policy: off", "security_policy", "strict"),
            ("human_in_the_loop: yes", "human_in_the_loop: no", "human_in_the_loop", True),
            ("isolation: required", "isolation: off", "isolation", "required"),
            ("allow_paths: /a", "allow_paths: /", "allow_paths", [["/"], ["/a"]]),
            ("deny_paths: /a", "deny_paths: /b", "deny_paths", ["/b", "/a"]),
            ("timeout: 5", "timeout: 100", "timeout", 5.0),
            ("timeout: 5", "timeout: 2", "timeout", 2.0),
            ("output: auto", "timeout: 100", "timeout", 100.0),
        ],
    )
    def test_project_can_only_tighten(
        self, folders: Folders, user: str, project: str, name: str, expected: object
    ) -> None:
        folders.user_file.write_text(user + "\n")
        folders.write(project + "\n")
        shown = read_envelope(folders.run("config", "show", "--json").out)["result"]
        assert shown[name] == expected


class TestServers:
    @pytest.mark.parametrize("name", TRUSTED_SETTINGS)
    @pytest.mark.parametrize("argv", [("api", "serve", "--port", "0"), ("mcp", "serve")])
    def test_server_does_not_start_with_an_ignored_setting(
        self, folders: Folders, name: str, argv: tuple[str, ...]
    ) -> None:
        """The operator may rely on the setting."""
        folders.write_setting(".tooli.yaml", name, TRUSTED_SETTINGS[name])
        done = folders.run(*argv)
        assert done.code == 2
        error = done.out + done.err
        assert b"E1011" in error
        assert f"{name} is ignored".encode() in b" ".join(error.split())

    @KINDS
    @pytest.mark.parametrize("host", ["0.0.0.0", "::"])
    def test_project_cannot_make_a_server_reachable(
        self, folders: Folders, kind: str, host: str
    ) -> None:
        tokens = write_tokens(folders.project / "tokens", "evil", "eve")
        folders.write_setting(kind, "tokens", tokens)
        done = folders.run("api", "serve", "--host", host, "--port", "0")
        assert done.code == 2
        assert b"served at" not in done.err

    @pytest.mark.parametrize("name", ["host", "port", "allow_unauthenticated", "allowed_hosts"])
    def test_project_cannot_set_flags_of_servers(self, folders: Folders, name: str) -> None:
        folders.write_setting(".tooli.yaml", name, "0.0.0.0")
        assert folders.run("api", "serve", "--port", "0").code == 2

    def test_token_in_dotenv_stops_the_server(self, folders: Folders) -> None:
        folders.write("TOOLI_TOKEN=secret\n", ".env")
        done = folders.run("api", "serve", "--port", "0")
        assert done.code == 2
        assert b"TOOLI_TOKEN is ignored" in b" ".join((done.out + done.err).split())

    def test_replaced_setting_is_reported_once(self, folders: Folders) -> None:
        """The operator sets the same setting, so that the server starts."""
        folders.write_setting(".tooli.yaml", "rate_limit", "1/day")
        done = folders.run("mcp", "serve", TOOLI_RATE_LIMIT="5/minute")
        assert done.code == 0, done.err
        assert done.err.count(b"rate_limit is ignored") == 1

    def test_operator_can_disable_project_files(self, folders: Folders) -> None:
        folders.write("tokens: /x\ntimeout: 5\n")
        folders.user_file.write_text("security_policy: strict\n")
        done = folders.run("mcp", "serve", TOOLI_CONFIG="user")
        assert (done.code, done.err) == (0, b"")
        shown = read_envelope(folders.run("config", "show", "--json", TOOLI_CONFIG="user").out)
        assert shown["result"]["security_policy"] == "strict"
        assert "timeout" not in shown["result"]


def _make_socket(path: Path) -> None:
    before = os.getcwd()
    os.chdir(path.parent)  # the path of a socket is limited to about 100 characters
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(before)


@POSIX
class TestFileKinds:
    @pytest.mark.parametrize("name", [".tooli.yaml", "pyproject.toml", ".env"])
    def test_pipe_does_not_block(self, folders: Folders, name: str) -> None:
        os.mkfifo(folders.project / name)
        done = folders.run("stock", "--json")
        assert done.code == (2 if name == ".tooli.yaml" else 0)
        shown = read_envelope(done.out)
        problems = [shown["error"]["message"]] if done.code else shown["meta"]["warnings"]
        assert len(problems) == 1 and name in problems[0]
        assert done.err == b""

    @pytest.mark.parametrize("name", ["pyproject.toml", ".env"])
    def test_special_file_is_reported_once(self, folders: Folders, name: str) -> None:
        folders.write("quiet: true\n")
        path = folders.project / name
        for make in (os.mkfifo, lambda path: path.symlink_to("/dev/null"), _make_socket):
            make(path)
            done = folders.run("stock", "--text")
            assert done.code == 0
            assert done.err.count(b"it is a pipe, a socket or a device") == 1
            server = folders.run("mcp", "serve")
            assert server.code == 0 and name.encode() in server.err
            path.unlink()

    @pytest.mark.parametrize("name", ["pyproject.toml", ".env"])
    def test_folder_is_not_reported(self, folders: Folders, name: str) -> None:
        (folders.project / name).mkdir()  # .env: a virtual environment
        done = folders.run("stock", "--text")
        assert (done.code, done.err) == (0, b"")

    @pytest.mark.parametrize("name", [".tooli.yaml", "pyproject.toml", ".env"])
    @pytest.mark.parametrize(
        "target",
        ["/dev/stdin", "/dev/zero", "/proc/self/environ", "/proc/self/fd/0", "/etc/passwd"],
    )
    def test_link_out_of_the_project_is_not_read(
        self, folders: Folders, name: str, target: str
    ) -> None:
        (folders.project / name).symlink_to(target)
        done = folders.run("stock", "--json", stdin=b"tokens: /x\n", SECRET="TOOLI_hunter2")
        assert done.code == 0
        assert b"hunter2" not in done.out + done.err
        assert b"root:" not in done.out + done.err

    def test_link_inside_the_project_is_read(self, folders: Folders) -> None:
        (folders.project / "conf").mkdir()
        (folders.project / "conf" / "tooli.yaml").write_text("output: plain\n")
        (folders.project / ".tooli.yaml").symlink_to("conf/tooli.yaml")
        assert folders.run("stock").out == str(folders.project).encode() + b"\n"

    def test_link_does_not_disclose_files(self, folders: Folders) -> None:
        secret = folders.home / "credentials"
        secret.write_text("hunter2: 1\n")
        (folders.project / ".tooli.yaml").symlink_to(secret)
        done = folders.run("stock", "--json")
        assert b"hunter2" not in done.out + done.err
        (warning,) = read_envelope(done.out)["meta"]["warnings"]
        assert "symbolic link to a file outside of its folder" in warning

    def test_stdin_is_not_consumed(self, folders: Folders) -> None:
        folders.app.write_text(
            "from tooli import StdinOr, Tooli\napp = Tooli('shop')\n"
            "@app.command()\ndef show(text: StdinOr[str]) -> str:\n    return text\n"
            "@app.command()\ndef other() -> None: ...\napp()\n"
        )
        for name in (".env", "pyproject.toml"):
            (folders.project / name).symlink_to("/dev/stdin")
        done = folders.run("show", "-", "--json", stdin=b"tool.tooli TOOLI_ all of it")
        assert read_envelope(done.out)["result"] == "tool.tooli TOOLI_ all of it"


@POSIX
class TestOwners:
    @pytest.mark.parametrize("name", [".tooli.yaml", "pyproject.toml", ".env"])
    @pytest.mark.parametrize("place", ["file", "folder"])
    @pytest.mark.parametrize("risk", ["owner", "others", "group"])
    @AS_ROOT
    def test_file_of_another_user_is_not_read(
        self, folders: Folders, name: str, place: str, risk: str
    ) -> None:
        file = folders.write_setting(name, "output", "plain")
        target = file if place == "file" else folders.project
        if risk == "owner":
            os.chown(target, OTHER_USER, -1)
        elif risk == "group":
            os.chown(target, -1, OTHER_USER)
            target.chmod(0o775)
        else:
            target.chmod(0o777)
        done = folders.run("stock")
        (warning,) = read_envelope(done.out)["meta"]["warnings"]
        assert warning.startswith(f"{file}: the file is ignored, because ")
        assert "trusted_dirs" in warning and str(folders.user_file) in warning
        assert "TOOLI_TRUSTED_DIRS" in warning
        assert folders.run("mcp", "serve").code == 2
        plain = str(folders.project).encode() + b"\n"
        assert folders.run("stock", TOOLI_TRUSTED_DIRS=str(folders.project)).out == plain
        folders.user_file.write_text(f"trusted_dirs: {folders.root}\n")
        assert folders.run("stock").out == plain

    @AS_ROOT
    def test_project_of_the_user_who_called_sudo_is_read(self, folders: Folders) -> None:
        file = folders.write("output: plain\n")
        os.chown(file, OTHER_USER, -1)
        os.chown(folders.project, OTHER_USER, -1)
        assert b"is ignored" in folders.run("stock").out
        assert b"is ignored" in folders.run("stock", SUDO_UID=str(OTHER_USER + 1)).out
        assert b"is ignored" not in folders.run("stock", SUDO_UID=str(OTHER_USER)).out

    @AS_ROOT
    def test_user_file_of_the_user_who_called_sudo_is_not_read(self, folders: Folders) -> None:
        """Its settings would let that user append to any file of root."""
        folders.user_file.write_text("work_dir: /\n")
        os.chown(folders.user_file, OTHER_USER, -1)
        done = folders.run("stock", "--json", SUDO_UID=str(OTHER_USER))
        answer = read_envelope(done.out)
        assert answer["result"] == str(folders.project)
        assert "the file is ignored" in answer["meta"]["warnings"][0]

    def test_sticky_folder_counts_as_writable(self, folders: Folders) -> None:
        folders.write("output: plain\n")
        folders.project.chmod(0o1777)
        assert b"every user can write" in folders.run("stock", "--json").out

    @pytest.mark.parametrize("depth", [1, 2, 3])
    def test_writable_folder_above_the_user_file(self, folders: Folders, depth: int) -> None:
        folders.user_file.write_text("work_dir: /\n")
        folders.user_file.parents[depth - 1].chmod(0o777)
        answer = read_envelope(folders.run("stock", "--json").out)
        assert answer["result"] == str(folders.project)
        assert "can write to the folder" in answer["meta"]["warnings"][0]

    def test_project_cannot_trust_itself(self, folders: Folders) -> None:
        folders.write(f"output: plain\ntrusted_dirs: {folders.project}\n").chmod(0o666)
        assert b"the file is ignored" in folders.run("stock", "--json").out

    @pytest.mark.parametrize("trusted", [".", "project", "/proc/self/cwd"])
    def test_relative_trusted_folder_is_invalid(self, folders: Folders, trusted: str) -> None:
        folders.write("output: plain\n").chmod(0o666)
        done = folders.run("stock", "--json", TOOLI_TRUSTED_DIRS=trusted)
        assert read_envelope(done.out)["error"]["code"] == "E1011"

    @AS_ROOT
    def test_unprivileged_user_reads_files_of_root_only(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            folders = Folders(Path(folder))
            folders.root.chmod(0o755)
            file = folders.write("output: plain\n")
            argv = (folders.app, "stock", "--json")
            options = {"cwd": folders.project, "env": folders.env(), "user": OTHER_USER}
            try:
                is_possible = run(*argv, **options).code == 0
            except PermissionError:
                is_possible = False
            if not is_possible:
                pytest.skip("another user cannot start the interpreter of the tests")
            plain = str(folders.project).encode() + b"\n"
            assert run(*argv[:2], **options).out == plain
            os.chown(file, OTHER_USER, -1)
            assert run(*argv[:2], **options).out == plain
            os.chown(file, OTHER_USER + 1, -1)
            assert b"is ignored" in run(*argv, **options).out


@POSIX
class TestHomeFolders:
    @pytest.mark.parametrize("variable", ["XDG_CONFIG_HOME", "HOME"])
    @pytest.mark.parametrize(
        "path",
        [
            *(".", "conf", "./conf", "../project", "/proc/self/cwd", "/proc/self/cwd/conf"),
            *(
                "//proc/self/cwd",
                "/./proc/self/cwd",
                "/tmp/../proc/self/cwd",
                "/proc/thread-self/cwd",
            ),
            *("/dev/fd/../cwd",),
        ],
    )
    def test_project_cannot_be_the_home_folder(
        self, folders: Folders, variable: str, path: str
    ) -> None:
        for folder in (".", "conf", ".config", "conf/.config"):
            file = folders.project / folder / "tooli" / "config.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("work_dir: /\n")
        env = {variable: path, "HOME": path if variable == "HOME" else str(folders.home)}
        answer = read_envelope(folders.run("stock", "--json", **env).out)
        assert answer["result"] == str(folders.project)
        assert f"{variable}: the folder is ignored" in answer["meta"]["warnings"][0]

    @pytest.mark.parametrize("path", ["conf", "/proc/self/cwd", "//proc/self/cwd"])
    def test_ignored_xdg_folder_keeps_the_users_settings(self, folders: Folders, path: str) -> None:
        folders.user_file.write_text("security_policy: strict\n")
        done = folders.run("stock", "--json", XDG_CONFIG_HOME=path)
        assert read_envelope(done.out)["error"]["code"] == "E2002"

    @pytest.mark.parametrize("name", ["tokens", "token_key", "audit_log"])
    @pytest.mark.parametrize(
        "path", ["file", "./file", "/proc/self/cwd/file", "/proc/1/root/file", "/dev/fd/0", "~x/f"]
    )
    def test_trusted_path_cannot_be_in_the_project(
        self, folders: Folders, name: str, path: str
    ) -> None:
        folders.write("x\n", "file")
        for env in ({f"TOOLI_{name.upper()}": path}, {}):
            folders.user_file.write_text("" if env else f"{name}: {path}\n")
            done = folders.run("stock", "--json", **env)
            error = read_envelope(done.out)["error"]
            assert error["code"] == "E1011"
            assert f"{name} must be the absolute path of a file" in error["message"]


def test_settings_are_not_loaded_without_settings_files(folders: Folders) -> None:
    script = folders.root / "main.py"
    script.write_text(
        "import sys\nsys.argv = ['shop', 'stock', '--json']\nfrom shop import app\n"
        "try:\n    app()\nfinally:\n    print('tooli.config' in sys.modules, file=sys.stderr)\n"
    )
    done = run(script, cwd=folders.project, env=folders.env(TOOLI_STATE_DIR=None))
    assert done.err == b"False\n", sys.version


@pytest.mark.parametrize("mode", ["--json", "--text"])
def test_quiet_project_does_not_hide_undeclared_access(folders: Folders, mode: str) -> None:
    folders.write("quiet: true\n")
    secret = folders.root / "secret"
    secret.write_text("x")
    result = folders.run("peek", str(secret), mode)
    assert result.code == 0
    if mode == "--json":
        assert "undeclared: fs:read" in read_envelope(result.out)["meta"]["warnings"][0]
    log = folders.root / "state" / "audit" / "shop.jsonl"
    (record,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert (record["event"], record["target"]) == ("violation", str(secret))
