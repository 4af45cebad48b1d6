"""Describe an app and its tools for people, agents and programs, without running a tool."""
