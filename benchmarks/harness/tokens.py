"""Count the tokens of a text, or estimate them if no tokenizer is available."""

from __future__ import annotations

import re
import subprocess

from harness.envs import TOKENS, Environments

COUNT = "import sys; from rs_bpe import openai; print(openai.o200k_base().count(sys.stdin.read()))"
PIECE = re.compile(r"[A-Za-z]+|\d{1,3}|[^\sA-Za-z\d]|\n\s*")


class TokenCounter:
    """Counts tokens with the encoding o200k; `exact` is False if they are estimated."""

    def __init__(self, envs: Environments) -> None:
        self.envs = envs

    @property
    def exact(self) -> bool:
        """True if the tokenizer is installed."""
        return self.envs.problem(TOKENS) is None

    def count(self, text: str) -> int:
        """Return the number of tokens. An estimate is rather too high than too low."""
        if not self.exact:
            return len(PIECE.findall(text))
        command = [self.envs.python(TOKENS), "-c", COUNT]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode:
            self.envs.problems[TOKENS] = "the tokenizer does not run on this machine"
            return self.count(text)
        return int(done.stdout)

    def metrics(self, text: str) -> dict[str, float]:
        """Return the metrics `tokens` and `bytes` of a text."""
        return {"tokens": float(self.count(text)), "bytes": float(len(text.encode()))}
