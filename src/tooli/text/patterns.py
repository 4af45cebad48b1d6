"""Find credentials and prompt injections in text.

Credentials are API keys, tokens and passwords. Only formats that cannot be confused with ordinary
text are listed, because missing a token is better than hiding ordinary text.

Prompt injections are phrases in a result that try to instruct the model that reads it. They are
reported in a warning, and the text is not changed. The list of patterns cannot be complete, so a
text without a finding is not necessarily safe.

A pattern is tried, and compiled by `re`, only if the text contains one of its markers. No pattern
backtracks.
"""

from __future__ import annotations

import re

from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# ------------------------------------------------------------------ credentials

_TOKEN_START = "(?<![A-Za-z0-9_-])"  # not in the middle of a word
_TOKEN_CHAR = "[A-Za-z0-9_-]"


def _pattern(name: str, pattern: str, *markers: str) -> tuple[str, str, tuple[str, ...]]:
    return name, pattern, markers


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

The pattern of `url-password` has a group, whose text is not redacted.
"""


def redact_credentials(text: str) -> tuple[str, list[str]]:
    """Return the text with credentials replaced by `[redacted:NAME]`, and their names."""
    names: list[str] = []
    for name, pattern, markers in CREDENTIAL_PATTERNS:
        if any([marker in text for marker in markers]):
            prefix = r"\1" if name == "url-password" else ""
            text, count = re.subn(pattern, f"{prefix}[redacted:{name}]", text)
            names += [name] * count
    return text, names


# ------------------------------------------------------------------ prompt injections

_EARLIER = (
    "(?:all |any |the |your |these |my |of |prior |previous |preceding |earlier |above |system )"
)
_INSTRUCTIONS = "(?:instructions?|prompts?|rules|directives|guidelines|messages|context)"
_TAGS = "(?:system|assistant|tool_call|tool_result|function_calls?|instructions?)"


def _injection_pattern(pattern: str, *markers: str) -> tuple[str, tuple[str, ...]]:
    return pattern.replace(" ", "\\s{1,3}"), markers


INJECTION_PATTERNS = (
    *[
        _injection_pattern(f"\\b{verb} {_EARLIER}{{1,4}}{_INSTRUCTIONS}\\b", f"{verb} ")
        for verb in ("ignore", "disregard", "forget", "override")
    ],
    _injection_pattern("\\byou are now (?:a|an|in|the|acting|going|dan)\\b", "you are now"),
    _injection_pattern("\\bfrom now on,? you (?:are|will|must|should)\\b", "from now on"),
    _injection_pattern("\\b(?:new|updated|real|actual) (?:system )?instructions?:", "instruction"),
    _injection_pattern(
        "\\b(?:begin|start|end|reveal|print|show|repeat|output)"
        " (?:of |me )?(?:the |your )?system prompt\\b",
        "system prompt",
    ),
    _injection_pattern(
        "\\bdo not (?:tell|inform|mention|reveal)(?: this)?(?: to)? the (?:user|human)\\b",
        *("do not tell", "do not inform", "do not mention", "do not reveal"),
    ),
    _injection_pattern(
        "\\bwithout (?:telling|asking|informing) the (?:user|human)\\b",
        "without telling",
        "without asking",
        "without informing",
    ),
    _injection_pattern(
        f"</?{_TAGS}\\s{{0,9}}>", "system>", "assistant>", "_call", "tool_result>", "instruction"
    ),
    _injection_pattern("<\\|[a-z_]{2,20}\\|>", "<|"),
    _injection_pattern("\\[/?inst\\]|<<sys>>", "inst]", "<<sys"),
    _injection_pattern(
        "^(?:system|assistant):\\s?(?:you|ignore|do not|always|never)\\b", "system:", "assistant:"
    ),
    _injection_pattern(
        "!\\[[^\\]\\n]{0,200}\\]\\(https?://[^\\s)?]{1,300}\\?[^\\s)]{1,500}\\)", "](http"
    ),
)
"""Patterns for text in lower case, with markers: every match contains at least one of them."""
MAX_FINDINGS = 3
"""Maximum number of findings in a warning."""
_MAX_PHRASE_CHARS = 60


def find_injections(value: object, max_findings: int = MAX_FINDINGS) -> Iterator[tuple[str, str]]:
    """Yield the JSON Pointer and the phrase of each finding in a value of JSON types."""
    for pointer, text in _iter_texts(value, ""):
        phrase = find_injection(text)
        if phrase is not None:
            yield pointer, phrase
            max_findings -= 1
            if not max_findings:
                return


def find_injection(text: str) -> str | None:
    """Return the first match of the first matching pattern, in lower case, or None."""
    text = text.lower()
    for pattern, markers in INJECTION_PATTERNS:
        if any([marker in text for marker in markers]):
            found = re.search(pattern, text, re.MULTILINE)
            if found is not None:
                return found.group()[:_MAX_PHRASE_CHARS]
    return None


def _iter_texts(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield pointer, value
    elif is_object(value):
        for key, item in value.items():
            child_pointer = f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"
            yield child_pointer, str(key)
            yield from _iter_texts(item, child_pointer)
    elif is_list(value):
        for i, item in enumerate(value):
            yield from _iter_texts(item, f"{pointer}/{i}")
