"""Descriptions of an app and its tools for people, agents and programs. They run no tools."""
