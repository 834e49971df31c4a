"""Secrets that are known by their form, whatever stands around them.

Each form is anchored at both ends and has a length, so that a commit id, a digest, a UUID or the inside of base64
data is none. What has no form of its own, such as a password, is known by the name it is given: see `secret_name`.
"""

import re
from collections.abc import Iterator

from detent.core.lazy import lazy


class Form:
    """A form of secrets. Its pattern is compiled on first use: compiling all of them takes longer than a command."""

    def __init__(
        self,
        kind: str,
        needles: tuple[str, ...],
        pattern: str,
        flags: re.RegexFlag = re.NOFLAG,
        *,
        least: int = 1,
    ) -> None:
        """One of the `needles` is in every text that the pattern can match, `least` times or more.

        Looking for them first is fast.
        """
        self.kind, self.needles, self.least, self._pattern, self._flags = kind, needles, least, pattern, flags

    @property
    def ignores_case(self) -> bool:
        return bool(self._flags & re.IGNORECASE)

    @lazy
    def pattern(self) -> re.Pattern[str]:
        """Its group `secret` is what has to go."""
        return re.compile(self._pattern, self._flags)


def _key(kind: str, *needles: str, pattern: str, least: int = 1) -> Form:
    """A word by itself, not a part of a longer one."""
    return Form(kind, needles, rf"(?<![A-Za-z0-9_-])(?P<secret>{pattern})(?![A-Za-z0-9_-])", least=least)


def _in(kind: str, *needles: str, pattern: str) -> Form:
    """Told by what stands around it, in lower or upper case."""
    return Form(kind, needles, pattern, re.IGNORECASE)


def _option(*programs: str, option: str) -> Form:
    """The value of an option of one letter that is a password to these programs."""
    names = "|".join(programs)
    return Form(
        "password", programs, rf"\b(?:{names})\s(?:[^\n|;&]{{0,200}}?\s)?{option}[\"']?(?P<secret>[^\s\"'|;&]+)"
    )


#: A line of the body of a private key, or one of its headers; blank lines are in between.
_KEY_LINE = r"(?:[A-Za-z0-9+/=]+|(?:Proc-Type|DEK-Info|Version|Comment): ?[^\n]{0,200})?"
#: The name of a variable that holds a secret.
_VARIABLE = r"(?:[A-Z0-9_]{0,60}_)?(?:PASS|PASSWD|PASSWORD|PASSPHRASE|SECRET|TOKEN|(?:API|ACCESS|SECRET|PRIVATE)_?KEY)"
_KEY_BODY = r"\s*[A-Za-z0-9+/=]{16,}\s*"
_PEM_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
KEY_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"

FORMS: tuple[Form, ...] = (
    # The second branch is a block whose end was cut off. (Possessive quantifiers are broken in Python 3.11.2.)
    Form(
        "private-key",
        ("PRIVATE KEY",),
        rf"(?P<secret>{_PEM_BEGIN}(?:[^-]*(?:-(?!----)[^-]*)*{KEY_END}|(?:(?:\s|\\n|\\r)*[A-Za-z0-9+/=]{{24,}})*))",
    ),
    # The same in base64, as a file of Kubernetes has it; a certificate is public.
    Form(
        "private-key",
        ("LS0tLS1CRUdJTi",),
        r"(?P<secret>LS0tLS1CRUdJTi(?!BDRVJUSUZJQ0FURS)[A-Za-z0-9+/]{20,}={0,2})",
    ),
    Form(
        "private-key",
        ("Private-Lines:",),
        r"Private-Lines: \d{1,4}\r?\n(?P<secret>[A-Za-z0-9+/=]+(?:\r?\n[A-Za-z0-9+/=]{16,})*)",
    ),
    _key("jwt", "eyJ", pattern=r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"),
    _key("anthropic-key", "sk-ant-", pattern=r"sk-ant-[A-Za-z0-9_-]{20,}"),
    _key("openai-key", "sk-", pattern=r"sk-(?:(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{20,})"),
    _key("github-token", "gh", "github_pat_", pattern=r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}"),
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
    _key("huggingface-token", "hf_", "api_org_", pattern=r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _key(
        "stripe-key",
        "_live_",
        "_test_",
        "whsec_",
        pattern=r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,}",
    ),
    _key("twilio-key", "SK", pattern=r"SK[0-9a-f]{32}"),
    _key("docker-token", "dckr_", pattern=r"dckr_[po]at_[A-Za-z0-9_-]{20,}"),
    _key("digitalocean-token", "_v1_", pattern=r"do[opr]_v1_[0-9a-f]{64}"),
    _key("shopify-token", "shp", pattern=r"shp(?:at|ca|pa|ss|ua)_[0-9A-Fa-f]{32}"),
    _key("linear-token", "lin_", pattern=r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    _key("notion-token", "ntn_", "secret_", pattern=r"ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}"),
    _key("tailscale-key", "tskey-", pattern=r"tskey-[a-z]{2,12}-[A-Za-z0-9]{6,}(?:-[A-Za-z0-9]{10,})?"),
    _key("vault-token", "hvs.", "hvb.", "hvr.", pattern=r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    Form(
        "telegram-token",
        (":AA",),
        r"(?<![A-Za-z0-9_-])(?:bot)?(?P<secret>\d{8,10}:AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])",
    ),
    # Its first part is a number in base64: it begins with one of these letters.
    _key("discord-token", ".", pattern=r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}", least=2),
    _in("discord-webhook", "api/webhooks", pattern=r"api/webhooks/\d{10,20}/(?P<secret>[A-Za-z0-9_-]{40,})"),
    _in("teams-webhook", "webhook.office.com", pattern=r"webhook\.office\.com/webhookb2/(?P<secret>[\w@/-]{60,})"),
    _key(
        "atlassian-token",
        "ATATT3",
        "ATCTT3",
        "ATBB",
        pattern=r"AT[AC]TT3[A-Za-z0-9_=-]{50,}|ATBB[A-Za-z0-9]{32}",
    ),
    _key("fly-token", "fo1_", "fm1", "fm2_", pattern=r"fo1_[A-Za-z0-9_-]{40,}|fm[12][ar]?_[A-Za-z0-9+/=]{40,}"),
    _key("netlify-token", "nfp_", "nfc_", pattern=r"nf[pc]_[A-Za-z0-9]{36,}"),
    _key("cargo-token", "cio", pattern=r"cio[A-Za-z0-9]{32}"),
    _key("jfrog-key", "AKCp", pattern=r"AKCp[A-Za-z0-9]{60,}"),
    _key("sonar-token", "sq", pattern=r"sq[pua]_[0-9a-f]{40}"),
    _key("buildkite-token", "bkua_", pattern=r"bkua_[0-9a-f]{40}"),
    _key("nuget-key", "oy2", pattern=r"oy2[a-z0-9]{43}"),
    _key("mapbox-token", "sk.eyJ", pattern=r"sk\.eyJ[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{20,}"),
    _key("contentful-token", "CFPAT-", pattern=r"CFPAT-[A-Za-z0-9_-]{40,}"),
    _key("easypost-key", "EZAK", "EZTK", pattern=r"EZ[AT]K[A-Za-z0-9]{54}"),
    _key("shippo-token", "shippo_", pattern=r"shippo_(?:live|test)_[0-9a-f]{40}"),
    _key("dynatrace-token", "dt0", pattern=r"dt0[a-z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _key("grafana-token", "glsa_", "glc_", pattern=r"glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/=]{32,}"),
    _key("databricks-token", "dapi", pattern=r"dapi[0-9a-f]{32}(?:-\d)?"),
    _key("doppler-token", "dp.", pattern=r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    _key("postman-key", "PMAK-", pattern=r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _key("newrelic-key", "NRAK-", pattern=r"NRAK-[A-Z0-9]{27}"),
    _key("planetscale-key", "pscale_", pattern=r"pscale_(?:pw|tkn|oauth)_[A-Za-z0-9_.-]{32,}"),
    _key("supabase-key", "sbp_", "sb_secret_", pattern=r"sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{20,}"),
    _key("figma-token", "figd_", pattern=r"figd_[A-Za-z0-9_-]{40,}"),
    _key("airtable-token", "pat", pattern=r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _key("mailgun-key", "key-", pattern=r"key-[0-9a-f]{32}"),
    _key("mailchimp-key", "-us", pattern=r"[0-9a-f]{32}-us\d{1,2}"),
    _key("square-token", "sq0", pattern=r"sq0[a-z]{3}-[A-Za-z0-9_-]{22,43}"),
    _key("rubygems-key", "rubygems_", pattern=r"rubygems_[0-9a-f]{48}"),
    _key("terraform-token", ".atlasv1.", pattern=r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70}"),
    _key("pulumi-token", "pul-", pattern=r"pul-[0-9a-f]{40}"),
    _key("sentry-token", "sntrys_", "sntryu_", pattern=r"sntry[su]_[A-Za-z0-9_=+/-]{40,}"),
    _key("groq-key", "gsk_", pattern=r"gsk_[A-Za-z0-9]{50,}"),
    _key("replicate-token", "r8_", pattern=r"r8_[A-Za-z0-9]{37,40}"),
    _key("perplexity-key", "pplx-", pattern=r"pplx-[A-Za-z0-9]{40,}"),
    _key("xai-key", "xai-", pattern=r"xai-[A-Za-z0-9]{60,}"),
    _key("age-key", "AGE-SECRET-KEY-", pattern=r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _key("azure-secret", "8Q~", pattern=r"[A-Za-z0-9_.~-]{3}8Q~[A-Za-z0-9_.~-]{31,34}"),
    _in(
        "azure-key",
        "key=",
        "sig=",
        "signature=",
        pattern=r"(?:(?:account|sharedaccess)key|sharedaccesssignature|[?&]sig)=(?P<secret>[A-Za-z0-9+/%&=_.~-]{20,})",
    ),
    _in(
        "aws-signature",
        "x-amz-",
        pattern=r"[?&]x-amz-(?:signature|security-token)=(?P<secret>[A-Za-z0-9+/%=_.~-]{20,})",
    ),
    # The user's name stays: it tells which account was used.
    _in(
        "password",
        "://",
        pattern=r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}://[^\s/:@\"'<>\[]{0,100}:"
        # A password may hold a slash. A port before a path is none.
        r"(?P<secret>[^\s/\"'<>]{1,300}|(?!\d{1,5}[/?#]|[${])[^\s@\"'<>]{1,300})@(?=[^\s@\"'])",
    ),
    _in(
        "authorization",
        "authorization",
        pattern=r"authorization\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?"
        r"(?:bearer|basic|token|apikey|digest|negotiate|ssws)\s{1,4}(?P<secret>[^\s\"'\\]+)",
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
        pattern=r"\bcurl(?=\s)[^\n]{0,200}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,100}:(?P<secret>[^\s\"']+)",
    ),
    _in(
        "cookie",
        "cookie",
        pattern=r"\bset-cookie\\?[\"']?\s{0,4}:\s{0,4}\\?[\"']?[^\s=;,\"']{1,100}=(?P<secret>[^\s;\"'\\]+)",
    ),
    _in(
        "cookie",
        "cookie",
        pattern=r"(?<!set-)\bcookie\\?[\"']?\s{0,4}:\s{0,4}\\?[\"']?(?P<secret>[^\s=;,\"']{1,100}=[^\n\"'\\]+)",
    ),
    _in(
        "cookie",
        "curl",
        pattern=r"\bcurl(?=\s)[^\n]{0,200}?\s(?:-b|--cookie)[ =]?[\"']?(?P<secret>[^\s=;\"']{1,100}=[^\s\"']+)",
    ),
    # The value of a registry in the settings of Docker, and of npm: user and password in base64.
    _in(
        "authorization",
        "auth",
        pattern=r"[\"']auth\\?[\"']\s{0,4}:\s{0,4}\\?[\"'](?=[^\"'\\]{0,300}[\d=])(?P<secret>[A-Za-z0-9+/]{12,}={0,2})\\?[\"']",
    ),
    _in("authorization", "_auth", pattern=r"\b_auth\s{0,4}=\s{0,4}[\"']?(?P<secret>[A-Za-z0-9+/]{8,}={0,2})"),
    # Programs that take a password as an option of one letter. `-P` is a port.
    Form(
        "password",
        ("mysql", "mariadb"),
        r"\b(?:mysql|mariadb)[a-z-]{0,12}\s(?:[^\n|;&]{0,200}?\s)?-p[\"']?(?P<secret>(?!assword\b|rotocol)[^\s\"'|;&-][^\s\"'|;&]*)",
    ),
    Form("password", ("sshpass",), r"\bsshpass\s{1,4}-p\s{0,4}[\"']?(?P<secret>[^\s\"']+)"),
    Form("password", ("redis-cli",), r"\bredis-cli\s[^\n|;&]{0,200}?-a\s{1,4}[\"']?(?P<secret>[^\s\"']+)"),
    Form(
        "password",
        (" login",),
        r"\b(?:docker|podman|az|oc|registry) login(?=\s)[^\n|;&]{0,200}?\s-p[ =]{1,2}[\"']?(?P<secret>[^\s\"']+)",
    ),
    _in("password", "pass:", pattern=r"-pass(?:in|out)?\s{1,4}[\"']?pass:(?P<secret>[^\s\"']+)"),
    Form(
        "password",
        ("htpasswd",),
        r"\bhtpasswd\s{1,4}-[a-zA-Z]{0,6}b[a-zA-Z]{0,6}\s{1,4}\S{1,200}\s{1,4}\S{1,100}\s{1,4}(?P<secret>\S+)",
    ),
    _option("zip", "unzip", "mosquitto_pub", "mosquitto_sub", option=r"-P\s{1,4}"),
    _option("ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami", option=r"-w\s{1,4}"),
    _option("twine", option=r"-p\s{1,4}"),
    _option("doctl", option=r"-t\s{1,4}"),
    _option("openssl enc", option=r"-k\s{1,4}"),
    _option("7z", "7za", "7zz", option=r"-p"),
    _option("smbclient", option=r"-U\s{0,4}[^\s%]{1,100}%"),
    _option("http", "https", "xh", option=r"-a\s{1,4}[\"']?[^\s:\"']{1,100}:"),
    _option("gh secret set", option=r"(?:-b|--body)[ =]{1,2}"),
    _option("kubectl", option=r"--from-literal[= ][^\s=]{1,100}="),
    _option("poetry config", option=r"http-basic\.\S{1,100}\s{1,4}\S{1,100}\s{1,4}"),
    Form(
        "password",
        ("sudo",),
        r"\becho\s{1,4}[\"']?(?P<secret>[^\s\"'|;&]+)[\"']?\s{0,4}\|\s{0,4}sudo\s[^\n|;&]{0,40}?-S",
    ),
    # A name and its value without a sign between them: in csh, fish, a Dockerfile and PHP, and in lists of variables.
    Form(
        "password",
        ("setenv ", "ENV ", "set -"),
        rf"\b(?:setenv|ENV|set -[a-zU]{{1,4}})[ \t]{{1,4}}{_VARIABLE}[ \t]{{1,4}}[\"']?"
        r"(?P<secret>[^\s\"'=$][^\s\"']{3,})",
    ),
    Form(
        "password",
        ("define(",),
        rf"\bdefine\(\s{{0,4}}[\"']{_VARIABLE}[\"']\s{{0,4}},\s{{0,4}}[\"'](?P<secret>[^\"'\n]{{1,300}})",
    ),
    _in(
        "password",
        "value",
        pattern=rf"name\\?[\"']\s{{0,4}}:\s{{0,4}}\\?[\"']{_VARIABLE}\\?[\"']\s{{0,4}},\s{{0,40}}\\?[\"']value\\?[\"']"
        r"\s{0,4}:\s{0,4}\\?[\"'](?P<secret>(?!\[redacted:|[${<])[^\"'\\\n]{4,300})",
    ),
    _in("password", "login", pattern=r"\blogin \S{1,100}\s{1,4}password (?P<secret>\S+)"),
    _in("password", "pwd=", pattern=r";\s?pwd=(?P<secret>[^;\s\"']+)"),
)


def is_key_open(text: str) -> bool:
    """Whether a private key begins in the text and does not end in it."""
    begins = text.rfind("-----BEGIN ")
    head = re.compile(_PEM_BEGIN).match(text, begins) if begins >= 0 else None
    return head is not None and re.compile(KEY_END).search(text, head.end()) is None


def is_key_body(text: str) -> bool:
    """Whether the text can be a part of the body of a private key."""
    return all(re.fullmatch(_KEY_LINE, line.strip()) for line in text.split("\n"))


def headless_keys(text: str) -> Iterator[tuple[str, int, int]]:
    """Ends of private keys whose beginning was cut off, with the lines of the body before them."""
    last = 0
    for end in re.finditer(KEY_END, text):
        start = end.start()
        while start > last:
            above = max(text.rfind("\n", last, start - 1) + 1, last)
            if not re.compile(_KEY_BODY).fullmatch(text, above, start):
                break
            start = above
        if start < end.start():
            yield "private-key", start, end.end()
        last = end.end()
