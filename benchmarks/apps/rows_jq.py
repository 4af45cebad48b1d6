"""Filter the rows of another program with jq, for comparison with `--filter` and `--select`."""

import os
import subprocess
import sys
from pathlib import Path

QUERY = "select(.even and .id >= 50000) | {id, title: .name}"


def main() -> None:
    """Pipe the output of SCRIPT, or a file, into jq: `run_rows_jq.py JQ COUNT [SCRIPT]`."""
    jq, count, *script = sys.argv[1:]
    libraries = sorted((Path(jq).parents[2] / "usr" / "lib").glob("*/libjq.so.1"))
    env = dict(os.environ)
    if libraries and not jq.startswith("/usr/bin"):
        env["LD_LIBRARY_PATH"] = str(libraries[0].parent)
    try:
        if script:
            program = [sys.executable, *script, "rows", count, "--jsonl"]
            source = subprocess.Popen(program, stdout=subprocess.PIPE)
            code = subprocess.run([jq, "-c", QUERY], stdin=source.stdout, env=env).returncode
            sys.exit(code or source.wait())
        with open(_rows_file(int(count)), "rb") as rows:
            sys.exit(subprocess.run([jq, "-c", QUERY], stdin=rows, env=env).returncode)
    except FileNotFoundError:
        sys.exit(f"{jq} does not exist")


def _rows_file(count: int) -> str:
    """Return the path of a file with the rows; write the file if it does not exist."""
    path = f"rows-{count}.jsonl"
    if not os.path.exists(path):
        from rows_argparse import rows

        with open(path, "w") as file:
            for row in rows(count):
                even = "true" if row["even"] else "false"
                file.write(f'{{"id":{row["id"]},"name":"{row["name"]}","even":{even}}}\n')
    return path
