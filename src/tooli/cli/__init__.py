"""The CLI surface: runs command lines of people and of agents."""
