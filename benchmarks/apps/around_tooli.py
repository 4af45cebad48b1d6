"""The two-command app as an agent runs it, in a project with settings."""

import os


def main() -> None:
    """Run the command line in other surroundings."""
    os.environ.update(CLAUDECODE="1", AI_AGENT="claude-code_2-1-325_agent")
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "settings"))
    from two_tooli import app

    app()
