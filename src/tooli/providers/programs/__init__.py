"""Command-line programs as tools: Click, Typer, argparse, optparse and cyclopts."""
