"""The command line: for a person, and for an agent."""
