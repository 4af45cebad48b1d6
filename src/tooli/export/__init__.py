"""Export the tools of an app to agent frameworks, Python functions or permission rules."""
