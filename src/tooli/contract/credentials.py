"""Credentials: texts that are keys and tokens by their looks, known by how they begin.

Only what can hardly be anything else is here: a missed token is better than a word that nobody
can read any more. A pattern is tried where one of its beginnings is in the text, and none can go
back further than it went.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False

if TYPE_CHECKING:
    from re import Pattern

_B = "(?<![A-Za-z0-9_-])"  # a token does not begin in the middle of a word
_WORD = "[A-Za-z0-9_-]"


def _kind(name: str, pattern: str, *signs: str) -> tuple[str, Pattern[str], tuple[str, ...]]:
    return name, re.compile(pattern), signs


KINDS = (
    _kind(
        "private-key",
        "-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----[^-]*(?:-(?!----END )[^-]*)*"
        "(?:-----END [A-Z0-9 ]{0,40}-----)?",
        "PRIVATE KEY",
    ),
    _kind("aws-access-key", f"{_B}(?:AKIA|ASIA)[0-9A-Z]{{16}}(?![0-9A-Za-z])", "AKIA", "ASIA"),
    _kind(
        "github-token",
        f"{_B}(?:gh[pousr]_[A-Za-z0-9]{{36,255}}|github_pat_[A-Za-z0-9_]{{22,255}})",
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    _kind("gitlab-token", f"{_B}gl(?:pat|dt|rt|cbt|ptt)-{_WORD}{{20,255}}", "gl"),
    _kind(
        "slack-token", f"{_B}(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{{10,255}}", "xox", "xapp-"
    ),
    _kind(
        "slack-webhook",
        "(?<=hooks\\.slack\\.com/services/)[A-Za-z0-9_]{6,}/[A-Za-z0-9_]{6,}/[A-Za-z0-9_]{16,}",
        "hooks.slack.com/services/",
    ),
    _kind(
        "stripe-key",
        f"{_B}(?:(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{{16,255}}|whsec_[A-Za-z0-9+/]{{24,255}})",
        *("k_live_", "k_test_", "whsec_"),
    ),
    _kind("anthropic-key", f"{_B}sk-ant-{_WORD}{{20,255}}", "sk-ant-"),
    _kind(
        "openai-key",
        f"{_B}sk-(?:(?:proj|svcacct|admin)-{_WORD}{{20,255}}|[A-Za-z0-9]{{32,255}})",
        "sk-",
    ),
    _kind("google-api-key", f"{_B}AIza{_WORD}{{35}}(?!{_WORD})", "AIza"),
    _kind("google-token", f"{_B}ya29\\.{_WORD}{{20,2048}}", "ya29."),
    _kind(
        "jwt", f"{_B}eyJ{_WORD}{{8,8192}}\\.eyJ{_WORD}{{8,8192}}\\.{_WORD}{{8,8192}}", "eyJ"
    ),
    _kind("npm-token", f"{_B}npm_[A-Za-z0-9]{{36}}(?!{_WORD})", "npm_"),
    _kind("pypi-token", f"{_B}pypi-{_WORD}{{50,1024}}", "pypi-"),
    _kind("sendgrid-key", f"{_B}SG\\.{_WORD}{{16,32}}\\.{_WORD}{{32,64}}", "SG."),
    _kind("twilio-key", f"{_B}SK[0-9a-f]{{32}}(?!{_WORD})", "SK"),
    _kind("huggingface-token", f"{_B}hf_[A-Za-z0-9]{{30,255}}", "hf_"),
    _kind("digitalocean-token", f"{_B}do[opr]_v1_[0-9a-f]{{64}}(?!{_WORD})", "_v1_"),
    _kind("shopify-token", f"{_B}shp(?:at|ca|pa|ss)_[0-9a-fA-F]{{32}}(?!{_WORD})", "shp"),
    _kind("databricks-token", f"{_B}dapi[0-9a-f]{{32}}(?![0-9a-zA-Z])", "dapi"),
    _kind("vault-token", f"{_B}hv[sbr]\\.{_WORD}{{24,512}}", "hvs.", "hvb.", "hvr."),
    _kind("telegram-token", "(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])", ":AA"),
    _kind("azure-key", "(?<=AccountKey=)[A-Za-z0-9+/]{40,255}={0,2}", "AccountKey="),
    _kind("azure-key", "(?<=SharedAccessKey=)[A-Za-z0-9+/]{30,255}={0,2}", "SharedAccessKey="),
    _kind("url-password", "(://[^\\s/:@]{0,256}:)(?!\\[redacted:)[^\\s/@]{1,256}(?=@)", "://"),
    _kind(
        "bearer-token", "(?<=[Bb]earer )[A-Za-z0-9._~+/-]{20,8192}={0,2}", "earer "
    ),
)  # fmt: skip
"""Each kind's name, its pattern, and what is in every text that it is in; a group stays."""


def hide_credentials(text: str) -> tuple[str, list[str]]:
    """The text with the names of credentials in their places, and those names."""
    names: list[str] = []
    for name, pattern, signs in KINDS:
        if any([sign in text for sign in signs]):
            kept = r"\1" if pattern.groups else ""
            text, count = pattern.subn(f"{kept}[redacted:{name}]", text)
            names += [name] * count
    return text, names
