"""Tokens in a text: counted where a tokenizer can be had, estimated otherwise."""

from __future__ import annotations

import re
import subprocess

from harness.envs import TOKENS, Environments

COUNT = "import sys; from rs_bpe import openai; print(openai.o200k_base().count(sys.stdin.read()))"
PIECE = re.compile(r"[A-Za-z]+|\d{1,3}|[^\sA-Za-z\d]|\n\s*")


class TokenCounter:
    """Counts as o200k does, or says that it estimates."""

    def __init__(self, envs: Environments) -> None:
        self.envs = envs

    @property
    def exact(self) -> bool:
        """Whether a real tokenizer is at hand."""
        return self.envs.problem(TOKENS) is None

    def count(self, text: str) -> int:
        """How many tokens a text is; an estimate errs on the high side."""
        if not self.exact:
            return len(PIECE.findall(text))
        command = [self.envs.python(TOKENS), "-c", COUNT]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode:
            self.envs.problems[TOKENS] = "the tokenizer does not run here"
            return self.count(text)
        return int(done.stdout)
