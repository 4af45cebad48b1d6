"""The benchmarks are consistent, and the HTTP app that they measure answers."""

from __future__ import annotations

import importlib
import json
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="passes a socket to a process")


def test_http_app_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fd, port = listener.fileno(), listener.getsockname()[1]
        command = [sys.executable, "-c", "from http_tooli import main; main()", str(fd)]
        server = subprocess.Popen(command, cwd=BENCHMARKS / "apps", pass_fds=[fd])
    try:
        body = json.dumps({"count": 3, "price": 0.25}).encode()
        url = f"http://127.0.0.1:{port}/tools/order"
        request = Request(url, body, {"Content-Type": "application/json"})
        with urlopen(request, timeout=30) as response:
            assert json.loads(response.read())["result"] == "3 bolt at 0.25"
    finally:
        server.kill()
        server.wait()


def test_figures_use_known_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    cases = importlib.import_module("harness.cases")
    figures = importlib.import_module("harness.figures").FIGURES
    envs, tokens = (importlib.import_module(f"harness.{name}") for name in ("envs", "tokens"))
    benchmarks = cases.build_benchmarks(tokens.TokenCounter(envs.Environments()))
    keys = {benchmark.key for benchmark in benchmarks}
    assert len(keys) == len(benchmarks)
    assert {benchmark.case for benchmark in benchmarks} <= cases.CASES.keys()
    assert {figure.case for figure in figures} == cases.CASES.keys()
    assert {term.key for figure in figures for term in figure.terms()} <= keys


def test_apps_and_probes_can_be_imported() -> None:
    paths = [*(BENCHMARKS / "apps").glob("*_tooli*.py"), *(BENCHMARKS / "apps").glob("*_probe.py")]
    code = f"import {', '.join(sorted(path.stem for path in paths))}"
    subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS / "apps", check=True)
