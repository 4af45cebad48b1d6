"""Run the two-command app as an agent, in a folder: `agent_tooli.py FOLDER ARGUMENTS…`."""

import os
import sys


def main() -> None:
    """Set the variables of an agent, change the folder, and run the command line."""
    os.environ.update(CLAUDECODE="1", AI_AGENT="claude-code_2-1-325_agent")
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), sys.argv.pop(1)))
    from two_tooli import app

    app()
