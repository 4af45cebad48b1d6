"""The same rows, filtered and cut down by jq: what is done where the command itself cannot."""

import os
import subprocess
import sys
from pathlib import Path

QUESTION = "select(.even and .id >= 50000) | {id, title: .name}"


def main() -> None:
    """`run_rows_jq.py JQ COUNT STARTER`: pipe a program's lines into jq; without one, a file's."""
    jq, count, *starter = sys.argv[1:]
    libraries = sorted((Path(jq).parents[2] / "usr" / "lib").glob("*/libjq.so.1"))
    env = dict(os.environ)
    if libraries and not jq.startswith("/usr/bin"):
        env["LD_LIBRARY_PATH"] = str(libraries[0].parent)
    try:
        if starter:
            program = [sys.executable, *starter, "rows", count, "--jsonl"]
            source = subprocess.Popen(program, stdout=subprocess.PIPE)
            code = subprocess.run([jq, "-c", QUESTION], stdin=source.stdout, env=env).returncode
            sys.exit(code or source.wait())
        with open(_kept(int(count)), "rb") as rows:
            sys.exit(subprocess.run([jq, "-c", QUESTION], stdin=rows, env=env).returncode)
    except FileNotFoundError:
        sys.exit(f"there is no {jq}")


def _kept(count: int) -> str:
    """A file with the rows, written by the first who needs it."""
    path = f"rows-{count}.jsonl"
    if not os.path.exists(path):
        from rows_argparse import rows

        with open(path, "w") as file:
            for row in rows(count):
                even = "true" if row["even"] else "false"
                file.write(f'{{"id":{row["id"]},"name":"{row["name"]}","even":{even}}}\n')
    return path
