"""Secrets that are known by their form, whatever stands around them.

Each form is anchored at both ends and has a length, so that a commit id, a digest, a UUID or the inside of base64
data is none. What has no form of its own, such as a password, is known by the name it is given: see `secret_name`.
"""

import re
from typing import NamedTuple


class Form(NamedTuple):
    kind: str
    #: One of these is in every text that the pattern can match; looking for them first is fast.
    needles: tuple[str, ...]
    #: Its group `secret` is what has to go.
    pattern: re.Pattern[str]


def _key(kind: str, *needles: str, pattern: str) -> Form:
    """A word by itself, not a part of a longer one."""
    return Form(kind, needles, re.compile(rf"(?<![A-Za-z0-9_-])(?P<secret>{pattern})(?![A-Za-z0-9_-])"))


def _in(kind: str, *needles: str, pattern: str) -> Form:
    """Told by what stands around it, in lower or upper case."""
    return Form(kind, needles, re.compile(pattern, re.IGNORECASE))


_PEM_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"

FORMS: tuple[Form, ...] = (
    # The second branch is a block whose end was cut off. (Possessive quantifiers are broken in Python 3.11.2.)
    Form(
        "private-key",
        ("PRIVATE KEY",),
        re.compile(
            rf"(?P<secret>{_PEM_BEGIN}(?:[^-]*(?:-(?!----)[^-]*)*{_PEM_END}|(?:(?:\s|\\n|\\r)*[A-Za-z0-9+/=]{{24,}})*))"
        ),
    ),
    _key("jwt", "eyJ", pattern=r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"),
    _key("anthropic-key", "sk-ant-", pattern=r"sk-ant-[A-Za-z0-9_-]{20,}"),
    _key("openai-key", "sk-", pattern=r"sk-(?:(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{20,})"),
    _key("github-token", "gh", pattern=r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}"),
    _key("gitlab-token", "gl", pattern=r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-[A-Za-z0-9_.-]{20,}"),
    _key("slack-token", "xox", "xapp-", pattern=r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}"),
    _in("slack-webhook", "hooks.slack.com", pattern=r"hooks\.slack\.com/services/(?P<secret>[A-Za-z0-9/]{20,})"),
    # The id is followed by its secret where both were copied together.
    _key(
        "aws-key",
        "AKIA",
        "ASIA",
        pattern=r"(?:AKIA|ASIA)[A-Z0-9]{16}(?:[\s,:;\"']{1,4}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+]))?",
    ),
    _key("google-key", "AIza", "ya29.", "GOCSPX-", pattern=r"AIza[A-Za-z0-9_-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{28}"),
    _key("npm-token", "npm_", pattern=r"npm_[A-Za-z0-9]{36}"),
    _key("pypi-token", "pypi-", pattern=r"pypi-[A-Za-z0-9_-]{50,}"),
    _key("sendgrid-key", "SG.", pattern=r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _key("huggingface-token", "hf_", pattern=r"hf_[A-Za-z0-9]{30,}"),
    _key(
        "stripe-key",
        "_live_",
        "_test_",
        "whsec_",
        pattern=r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,}",
    ),
    _key("twilio-key", "SK", pattern=r"SK[0-9a-f]{32}"),
    _in(
        "azure-key",
        "key=",
        "sig=",
        "signature=",
        pattern=r"(?:(?:account|sharedaccess)key|sharedaccesssignature|[?&]sig)=(?P<secret>[A-Za-z0-9+/%&=_.~-]{20,})",
    ),
    # The user's name stays: it tells which account was used.
    _in(
        "password",
        "://",
        pattern=r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}://[^\s/:@\"'<>\[]{0,100}:(?P<secret>[^\s/\"'<>]{1,300})@(?=[^\s@\"'])",
    ),
    _in(
        "authorization",
        "authorization",
        pattern=r"authorization\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?"
        r"(?:bearer|basic|token|apikey|digest|negotiate)\s{1,4}(?P<secret>[^\s\"'\\]+)",
    ),
    _in(
        "authorization",
        "authorization",
        pattern=r"authorization\\?[\"']?: ?\\?[\"']?(?=\S{0,100}\d)(?P<secret>[^\s\"'\\]{16,})",
    ),
    _in("authorization", "bearer", pattern=r"\bbearer\s{1,4}(?=\S{0,100}\d)(?P<secret>[A-Za-z0-9._~+/-]{20,}=*)"),
    _in(
        "password",
        "curl",
        pattern=r"\bcurl\s[^\n]{0,200}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,100}:(?P<secret>[^\s\"']+)",
    ),
    _in("password", "login", pattern=r"\blogin \S{1,100}\s{1,4}password (?P<secret>\S+)"),
    _in("password", "pwd=", pattern=r";\s?pwd=(?P<secret>[^;\s\"']+)"),
)
