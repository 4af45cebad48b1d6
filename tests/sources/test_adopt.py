"""tooli adopt and tooli registry forget."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.integration.app_process import PROCESS_TIMEOUT
from tests.sources.source_home import SourceHome


@pytest.fixture
def home(tmp_path: Path) -> SourceHome:
    return SourceHome(tmp_path)


def test_source_is_kept_and_used(home: SourceHome, tmp_path: Path) -> None:
    done = home("adopt", "desk", "files:desk", "--include", "list*")
    assert done["result"] == {
        "name": "desk",
        "action": "created",
        "source": f"--include 'list*' files:{tmp_path / 'desk'}",
        "tools": 1,
        "stored_in": done["result"]["stored_in"],
        "try": "tooli run @desk --help",
    }
    assert home("run", "@desk", "list-orders")["result"] == [1, 2]
    assert home("run", "@desk", "cancel", "1")["error"]["code"] == "E1001"
    assert [tool["name"] for tool in home("tools", "@desk")["result"]] == ["list-orders"]
    assert home("adopt", "desk", "files:desk", "--include", "list*")["result"]["action"] == (
        "current"
    )
    more = home("run", "--include", "*", "@desk", "cancel", "1")
    assert more["error"]["code"] == "E1001"  # both selections apply


def test_name_of_another_source(home: SourceHome) -> None:
    home("adopt", "desk", "files:desk")
    refused = home("adopt", "desk", "shop.py")["error"]
    assert (refused["code"], refused["field"]) == ("E3020", "name")
    assert home("run", "@desk", "list-orders")["ok"]
    assert home("adopt", "desk", "shop.py", "--force")["result"]["action"] == "updated"
    assert home("run", "@desk", "find", "tea")["result"] == ["tea"]
    forgotten = home("registry", "forget", "@desk")["result"]
    assert forgotten == {"name": "desk", "source": str(home.folder / "shop.py")}
    assert home("registry", "forget", "desk")["error"]["code"] == "E3010"
    assert home("run", "@desk")["error"]["code"] == "E3010"


@pytest.mark.parametrize(
    ("argv", "code", "field"),
    [
        (("Desk", "files:desk"), "E1000", "name"),
        (("../x", "files:desk"), "E1000", "name"),
        (("x" * 65, "files:desk"), "E1000", "name"),
        (("desk", "files:missing"), "E3010", "source"),
        (("desk", "missing.py"), "E3010", "source"),
        (("desk", "@other"), "E1000", "source"),
        (("desk", "files:desk", "--include", "zzz"), "E1000", "include"),
        (("desk", "files:desk", "--header", "A=b"), "E1000", "headers"),
        (("desk", "openapi:desk/orders.py", "--header", "X-Key=plain"), "E1032", "headers"),
        (("desk", "mcp:server --token hunter2"), "E1032", "source"),
    ],
)
def test_what_cannot_be_adopted(
    home: SourceHome, argv: tuple[str, ...], code: str, field: str
) -> None:
    refused = home("adopt", *argv)["error"]
    assert (refused["code"], refused.get("field")) == (code, field)
    assert "hunter2" not in str(refused)
    assert home("registry", "list")["result"] == []


def test_source_without_read_only_tools(home: SourceHome) -> None:
    (home.folder / "desk" / "orders.py").write_text("def pay(amount: int) -> int: return amount\n")
    refused = home("adopt", "desk", "files:desk", "--read-only")["error"]
    assert refused["field"] == "read_only"
    assert refused["suggestion"]["fix"] == "The tools are pay."
    (home.folder / "desk" / "orders.py").write_text("def broken(:\n")
    refused = home("adopt", "desk", "files:desk")["error"]
    assert "orders.py" in refused["message"] and refused["field"] == "source"
    (home.folder / "desk" / "orders.py").unlink()
    assert home("adopt", "desk", "files:desk")["error"]["code"] == "E3010"


def test_dry_run_writes_nothing(home: SourceHome) -> None:
    planned = home("adopt", "desk", "files:desk", "--install", "--bin-dir", "bin", "--dry-run")
    assert planned["result"]["action"] == "created"
    assert home("registry", "list")["result"] == []
    assert not (home.folder / "bin").exists()
    home("adopt", "desk", "files:desk")
    assert home("registry", "forget", "desk", "--dry-run")["result"]["name"] == "desk"
    assert len(home("registry", "list")["result"]) == 1


@pytest.mark.skipif(os.name == "nt", reason="the program is a batch file there")
def test_program_runs_the_source(home: SourceHome) -> None:
    done = home("adopt", "desk", "files:desk", "--install", "--bin-dir", "my bin")
    program = home.folder / "my bin" / "desk"
    assert done["result"]["program"] == str(program)
    assert done["meta"]["warnings"] == [
        f"{program.parent} is not on the PATH. Add it, or start {program}."
    ]

    def start(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, *argv],
            capture_output=True,
            text=True,
            env=home.env,
            cwd="/",
            timeout=PROCESS_TIMEOUT,
        )

    assert '"result":[1,2,3]' in start("list-orders", "--limit", "3", "--json").stdout
    assert "Usage: desk COMMAND" in start("--help").stdout
    assert "desk list-orders --limit 3" in start("list-orders", "--limt", "3", "--json").stdout
    assert '"name":"list_orders"' in start("mcp", "export").stdout.replace(" ", "")
    assert home("adopt", "desk", "files:desk")["result"]["action"] == "current"

    (home.folder / "desk").rename(home.folder / "moved")
    gone = start("list-orders", "--json")
    assert (gone.returncode, "there is no folder" in gone.stdout) == (10, True)
    assert home("registry", "forget", "desk")["result"]["program"] == str(program)
    assert not program.exists()


@pytest.mark.skipif(os.name == "nt", reason="the program is a batch file there")
def test_other_files_are_not_replaced(home: SourceHome) -> None:
    (home.folder / "bin").mkdir()
    other = home.folder / "bin" / "desk"
    other.write_text("#!/bin/sh\n")
    argv = ("adopt", "desk", "files:desk", "--install", "--bin-dir", "bin")
    refused = home(*argv, "--force")["error"]
    assert (refused["code"], refused["field"]) == ("E3020", "install")
    assert home("registry", "list")["result"] == []
    other.unlink()
    assert home(*argv)["ok"]
    other.write_text("#!/bin/sh\n")
    assert "program" not in home("registry", "forget", "desk")["result"]
    assert other.read_text() == "#!/bin/sh\n"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="modes do not stop this user")
def test_program_that_cannot_be_written(home: SourceHome) -> None:
    (home.folder / "bin").mkdir(mode=0o500)
    refused = home("adopt", "desk", "files:desk", "--install", "--bin-dir", "bin")["error"]
    assert refused["code"] == "E4060"
    assert home("registry", "list")["result"] == []


def test_program_is_removed_if_the_source_cannot_be_stored(home: SourceHome) -> None:
    home("adopt", "first", "files:desk")
    config = Path(home("registry", "list")["result"][0]["where"])
    config.write_text("{")
    refused = home("adopt", "desk", "files:desk", "--install", "--bin-dir", "bin")["error"]
    assert refused["code"] == "E3000"
    assert not (home.folder / "bin" / "desk").exists()
    warnings = home("registry", "list")["meta"]["warnings"]
    assert "sources.json cannot be used" in warnings[0]
