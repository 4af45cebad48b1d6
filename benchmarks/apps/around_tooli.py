"""The two-command app as an agent runs it: `around_tooli.py FOLDER WORDS…`, in that folder."""

import os
import sys


def main() -> None:
    """Run the command line in other surroundings."""
    os.environ.update(CLAUDECODE="1", AI_AGENT="claude-code_2-1-325_agent")
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), sys.argv.pop(1)))
    from two_tooli import app

    app()
