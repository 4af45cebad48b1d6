"""Run commands: time limits, processes of their own, sandbox and monitor."""
