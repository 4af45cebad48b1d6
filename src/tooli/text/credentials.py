"""Find API keys, tokens and passwords in text by their format.

Only formats that cannot be confused with ordinary text are listed, because missing a token is
better than hiding ordinary text. A pattern is tried only if the text contains one of its markers.
No pattern backtracks.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False

if TYPE_CHECKING:
    from re import Pattern

_TOKEN_START = "(?<![A-Za-z0-9_-])"  # not in the middle of a word
_TOKEN_CHAR = "[A-Za-z0-9_-]"


def _pattern(name: str, pattern: str, *markers: str) -> tuple[str, Pattern[str], tuple[str, ...]]:
    return name, re.compile(pattern), markers


CREDENTIAL_PATTERNS = (
    _pattern(
        "private-key",
        "-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----[^-]*(?:-(?!----END )[^-]*)*"
        "(?:-----END [A-Z0-9 ]{0,40}-----)?",
        "PRIVATE KEY",
    ),
    _pattern("aws-access-key", f"{_TOKEN_START}(?:AKIA|ASIA)[0-9A-Z]{{16}}(?![0-9A-Za-z])", "AKIA", "ASIA"),  # noqa: E501
    _pattern(
        "github-token",
        f"{_TOKEN_START}(?:gh[pousr]_[A-Za-z0-9]{{36,255}}|github_pat_[A-Za-z0-9_]{{22,255}})",
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    _pattern("gitlab-token", f"{_TOKEN_START}gl(?:pat|dt|rt|cbt|ptt)-{_TOKEN_CHAR}{{20,255}}", "gl"),  # noqa: E501
    _pattern(
        "slack-token", f"{_TOKEN_START}(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{{10,255}}", "xox", "xapp-"
    ),
    _pattern(
        "slack-webhook",
        "(?<=hooks\\.slack\\.com/services/)[A-Za-z0-9_]{6,}/[A-Za-z0-9_]{6,}/[A-Za-z0-9_]{16,}",
        "hooks.slack.com/services/",
    ),
    _pattern(
        "stripe-key",
        f"{_TOKEN_START}(?:(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{{16,255}}|whsec_[A-Za-z0-9+/]{{24,255}})",
        *("k_live_", "k_test_", "whsec_"),
    ),
    _pattern("anthropic-key", f"{_TOKEN_START}sk-ant-{_TOKEN_CHAR}{{20,255}}", "sk-ant-"),
    _pattern(
        "openai-key",
        f"{_TOKEN_START}sk-(?:(?:proj|svcacct|admin)-{_TOKEN_CHAR}{{20,255}}|[A-Za-z0-9]{{32,255}})",
        "sk-",
    ),
    _pattern("google-api-key", f"{_TOKEN_START}AIza{_TOKEN_CHAR}{{35}}(?!{_TOKEN_CHAR})", "AIza"),
    _pattern("google-token", f"{_TOKEN_START}ya29\\.{_TOKEN_CHAR}{{20,2048}}", "ya29."),
    _pattern(
        "jwt", f"{_TOKEN_START}eyJ{_TOKEN_CHAR}{{8,8192}}\\.eyJ{_TOKEN_CHAR}{{8,8192}}\\.{_TOKEN_CHAR}{{8,8192}}", "eyJ"  # noqa: E501
    ),
    _pattern("npm-token", f"{_TOKEN_START}npm_[A-Za-z0-9]{{36}}(?!{_TOKEN_CHAR})", "npm_"),
    _pattern("pypi-token", f"{_TOKEN_START}pypi-{_TOKEN_CHAR}{{50,1024}}", "pypi-"),
    _pattern("sendgrid-key", f"{_TOKEN_START}SG\\.{_TOKEN_CHAR}{{16,32}}\\.{_TOKEN_CHAR}{{32,64}}", "SG."),  # noqa: E501
    _pattern("twilio-key", f"{_TOKEN_START}SK[0-9a-f]{{32}}(?!{_TOKEN_CHAR})", "SK"),
    _pattern("huggingface-token", f"{_TOKEN_START}hf_[A-Za-z0-9]{{30,255}}", "hf_"),
    _pattern("digitalocean-token", f"{_TOKEN_START}do[opr]_v1_[0-9a-f]{{64}}(?!{_TOKEN_CHAR})", "_v1_"),  # noqa: E501
    _pattern("shopify-token", f"{_TOKEN_START}shp(?:at|ca|pa|ss)_[0-9a-fA-F]{{32}}(?!{_TOKEN_CHAR})", "shp"),  # noqa: E501
    _pattern("databricks-token", f"{_TOKEN_START}dapi[0-9a-f]{{32}}(?![0-9a-zA-Z])", "dapi"),
    _pattern("vault-token", f"{_TOKEN_START}hv[sbr]\\.{_TOKEN_CHAR}{{24,512}}", "hvs.", "hvb.", "hvr."),  # noqa: E501
    _pattern("telegram-token", "(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])", ":AA"),
    _pattern("azure-key", "(?<=AccountKey=)[A-Za-z0-9+/]{40,255}={0,2}", "AccountKey="),
    _pattern("azure-key", "(?<=SharedAccessKey=)[A-Za-z0-9+/]{30,255}={0,2}", "SharedAccessKey="),
    _pattern("url-password", "(://[^\\s/:@]{0,256}:)(?!\\[redacted:)[^\\s/@]{1,256}(?=@)", "://"),
    _pattern(
        "bearer-token", "(?<=[Bb]earer )[A-Za-z0-9._~+/-]{20,8192}={0,2}", "earer "
    ),
)  # fmt: skip
"""Name, pattern and markers of each kind. Every match contains a marker.

If a pattern has a group, the text of the group is not redacted.
"""


def redact_credentials(text: str) -> tuple[str, list[str]]:
    """Return the text with credentials replaced by `[redacted:NAME]`, and their names."""
    names: list[str] = []
    for name, pattern, markers in CREDENTIAL_PATTERNS:
        if any([marker in text for marker in markers]):
            prefix = r"\1" if pattern.groups else ""
            text, count = pattern.subn(f"{prefix}[redacted:{name}]", text)
            names += [name] * count
    return text, names
