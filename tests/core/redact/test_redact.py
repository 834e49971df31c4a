"""What must go and what must stay. The secrets are made up, and put together so that no scanner takes them for real."""

import base64
import hashlib
import json
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detent.core.redact import MAX_DEPTH, redact, redact_tree

MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fX" * 4
HEX = "0123456789abcdef" * 4


def mixed(length):
    return MIXED[:length]


PEM_BODY = "\n".join(mixed(64) for _ in range(4))
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}\n-----END RSA PRIVATE KEY-----"
JWT = f"eyJ{mixed(20)}.eyJ{mixed(30)}.{mixed(43)}"

#: Name of the case to the text around it, the secret, and what it is called.
SECRETS = {
    "OpenAI": ("use {} here", "sk-" + mixed(48), "openai-key"),
    "OpenAI project": ("use {} here", "sk-proj-" + mixed(30) + "_" + mixed(30), "openai-key"),
    "Anthropic": ("key: {}", "sk-ant-api03-" + mixed(60) + "-" + mixed(20), "anthropic-key"),
    "GitHub classic": ("cloned with {}.", "ghp_" + mixed(36), "github-token"),
    "GitHub OAuth": ("{}", "gho_" + mixed(36), "github-token"),
    "GitHub app": ("x-access {}", "ghs_" + mixed(36), "github-token"),
    "GitHub fine-grained, of few letters": ("({})", "github_pat_" + "A1" * 20, "github-token"),
    "GitHub fine-grained": ("({})", "github_pat_" + mixed(22) + "_" + mixed(59), "github-token"),
    "GitHub in a URL": ("git clone https://{}@github.com/a/b", "ghp_" + mixed(36), "github-token"),
    "GitLab": ("{}\n", "glpat-" + mixed(20), "gitlab-token"),
    "Slack bot": ("'{}'", "xoxb-" + "123456789012-" + mixed(24), "slack-token"),
    "Slack user": ("{}", "xoxp-" + "123456789012-" + mixed(24), "slack-token"),
    "Slack webhook": ("POST https://hooks.slack.com/services/{}", "T0001/B0001/" + mixed(24), "slack-webhook"),
    "AWS id": ("id {} used", "AKIA" + "ABCDEFGH23456789", "aws-key"),
    "AWS temporary id": ("{}/2026/us-east-1", "ASIA" + "ABCDEFGH23456789", "aws-key"),
    "AWS id and secret": ("user,{}", "AKIA" + "ABCDEFGH23456789," + mixed(40), "aws-key"),
    "AWS secret": ("aws_secret_access_key = {}", mixed(38) + "/+", "secret"),
    "Google": ("?key={}", "AIza" + mixed(35), "google-key"),
    "Google OAuth": ("{}", "ya29." + mixed(60), "google-key"),
    "npm": ("//registry.npmjs.org/:_authToken={}", "npm_" + mixed(36), "npm-token"),
    "PyPI": ("{}", "pypi-" + mixed(100), "pypi-token"),
    "SendGrid": ("{}", "SG." + mixed(22) + "." + mixed(43), "sendgrid-key"),
    "Hugging Face": ("login {}", "hf_" + mixed(34), "huggingface-token"),
    "Stripe": ("{}", "sk_" + "live_" + mixed(24), "stripe-key"),
    "Stripe restricted": ("{}", "rk_" + "live_" + mixed(24), "stripe-key"),
    "Twilio": ("{}", "SK" + HEX[:32], "twilio-key"),
    "Twilio auth token": ("TWILIO_AUTH_TOKEN={}", HEX[:32], "token"),
    "JWT": ("jwt {} end", JWT, "jwt"),
    "private key": ("before\n{}\nafter", PEM, "private-key"),
    "private key in JSON": ('{{"k": "{}"}}', PEM.replace("\n", "\\n"), "private-key"),
    "private key cut off": ("before\n{}", PEM[:200], "private-key"),
    "Azure storage": ("AccountName=a;AccountKey={};EndpointSuffix=core", mixed(86) + "==", "azure-key"),
    "Azure SAS": ("https://a.blob.core/x?sv=1&sig={}", mixed(43) + "%3D", "azure-key"),
    "bearer header": ("Authorization: Bearer {}", mixed(30), "authorization"),
    "basic header": ('-H "Authorization: Basic {}"', base64.b64encode(b"bob:hunter2").decode(), "authorization"),
    "header without a scheme": ("Authorization: {}", mixed(30), "authorization"),
    "bearer in JSON": ('{{"Authorization": "Bearer {}"}}', mixed(30), "authorization"),
    "bearer alone": ("sent bearer {} to it", mixed(30), "authorization"),
    "Postgres URL": ("postgres://bob:{}@db.local:5432/shop", "hunter2", "password"),
    "Mongo URL": ("mongodb+srv://bob:{}@cluster0.mongodb.net", "p@ss:w0rd!", "password"),
    "Redis URL": ("redis://:{}@localhost:6379/0", "hunter2", "password"),
    "HTTP URL": ("https://bob:{}@example.com/x", "hunter2", "password"),
    "curl": ("curl -s -u bob:{} https://example.com", "hunter2", "password"),
    "netrc": ("machine x login bob password {}", "hunter2", "password"),
    "SQL Server": ("Server=db;Database=shop;User Id=bob;Password={};Encrypt=true", "hunter2", "password"),
    "ODBC": ("Uid=bob;Pwd={};", "hunter2", "password"),
    "environment file": ("DB_PASSWORD={}", "correct,horse;battery&staple", "password"),
    "environment file, a word": ("export DB_PASSWORD={}", "mysecretpassword", "password"),
    "environment file, numbers": ("DB_PASSWORD={}", "123456", "password"),
    "shell prefix": ("GH_TOKEN={} gh pr list", "abcd1234", "token"),
    "query": ("GET /x?user=bob&api_key={}&page=2", "abcdefgh", "api-key"),
    "JSON": ('{{"client_secret": "{}", "user": "bob"}}', "hunter2", "secret"),
    "JSON in JSON": (r'"{{\"password\": \"{}\"}}"', "hunter2", "password"),
    "JSON cut off": ('{{"password": "{}', "hunter2", "password"),
    "YAML": ("db:\n  password: {}\n", "hunter2", "password"),
    "YAML quoted": ("  api-key: '{}'", "abc def", "api-key"),
    "TOML": ('private_key = "{}"', "abcdef", "key"),
    "INI": ("password = {}", "hunter2!", "password"),
    "Python": ("API_KEY: str = '{}'", "abcdef", "api-key"),
    "Python argument": ("connect(user='bob', password='{}')", "hunter2", "password"),
    "JavaScript": ("const apiKey = `{}`;", "abcdef", "api-key"),
    "Ruby": (":password => '{}'", "hunter2", "password"),
    "Go": ('token := "{}"', "abcdef", "token"),
    "flag": ("tool --password {} --user bob", "hunter2", "password"),
    "flag with =": ("tool --api-key={} x", "abcdefgh", "api-key"),
    "header": ('-H "X-Api-Key: {}"', "abcdef123456", "api-key"),
    "XML": ("<server><password>{}</password></server>", "hunter2", "password"),
    "after an apostrophe": ("don't say password='{}'", "hunter2", "password"),
    "compared": ('if password == "{}":', "hunter2", "password"),
    "a name that ends in a letter": ("password_e = '{}'", "hunter2", "password"),
    "inside something harmless": ('password_hint="password={}"', "hunter2", "password"),
    "passphrase": ('"passphrase": "{}"', "correct horse battery staple", "password"),
}

DIGEST = hashlib.sha256(b"x").hexdigest()
IMAGE = base64.b64encode(hashlib.sha512(b"x").digest() * 400).decode()

LOOKALIKES = [
    "commit 3c18e06f2a9b4d5e6f708192a3b4c5d6e7f80912",
    f"sha256:{DIGEST}",
    f"integrity sha512-{base64.b64encode(hashlib.sha512(b'x').digest()).decode()}",
    str(uuid.UUID(int=2**100 + 7)),
    f"data:image/png;base64,{IMAGE}",
    "scikit-learn sk-learn-contrib-with-a-very-long-name",
    "<div class='sk-cube-grid sk-cube1'>",
    "task-ghp_short and npm_config_cache=/tmp/x",
    "AKIA is the prefix; AKIAshort is none",
    "eyJ is how a JWT begins",
    "hf_transfer, hf_hub_download",
    "SG.1.2",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI me@host",
    "https://example.com:8080/path?x=1",
    "git@github.com:org/repo.git",
    "ssh://git@github.com:22/org/repo.git",
    "postgres://bob@db:5432/shop",
    "postgres://bob:${PGPASSWORD}@db/shop",
    "postgres://user:<password>@host/db",
    "mail bob@example.com or http://localhost:3000/@scope/pkg",
    "PWD=/home/bob OLDPWD=/tmp",
    "docker run -u 1000:1000 image",
    "max_tokens=4096, n_tokens: 12",
    '{"input_tokens": 1234567, "output_tokens": "89", "token_count": 3}',
    "TOKEN_LIMIT=100000",
    "tokens used: 1,234,567",
    "tokenizer='gpt2-large' tokenizer_name: bert-base-uncased2",
    "the secretary: Bob1234",
    "passwordless=enabled1",
    '"token_type": "bearer"',
    '"token_endpoint": "https://example.com/oauth2/token"',
    "private_key_path = '/home/bob/.ssh/id_ed25519'",
    "password_file: /run/secrets/db1",
    'secretName: "db-secret-1"',
    "DB_PASSWORD=${DB_PASSWORD}",
    "DB_PASSWORD=$DB_PASSWORD",
    'password: "{{ vault_password }}"',
    "API_KEY=<your key>",
    "API_KEY=your-api-key-1",
    "PASSWORD=",
    'password=""',
    "secret: null",
    '"password": true',
    "token: None,",
    "password=***",
    "def login(user: str, password: str) -> Token:",
    "function login(password: string, token?: string) {}",
    "token: Optional[str] = None",
    "connect(password=password, token=self.token)",
    "token = get_token()",
    'password = os.environ["DB_PASSWORD1"]',
    "secret = settings.SECRET_KEY",
    "if token == expected:",
    "login(\n    password=settings.pw\n)",
    "git switch task-3c18e06f2a9b4d5e6f708192",
    "QmFAKIAABCDEFGH23456789QmFzZQ",
    "[redacted:token]: abc12345",
    "ERRORTOKEN = token.ERRORTOKEN",
    "_tokens = (SETTING, ARGUMENT2)",
    "Token: '#dcdccc'",
    "<usage><subagent_tokens>5419</subagent_tokens></usage>",
    'elif token.string == "def":',
    "def getpass(prompt='Password: ', stream=None): pass",
    'print("shlex: raw token=" + repr(result))',
    "Token::new(1234567)",
    "the password: it must have eight letters",
    "--token and --password options are described below",
    "gh auth login --with-token",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer <token>",
    "authorization = authorization[1].encode('ascii')",
    "the bearer of this letter, bearer authentication",
    '"password": "Wrong password, try again"',
    "<password>${env.PASSWORD}</password>",
    "Tokens\n===============\n\nA token is a word.",
    "Passwords are hashed; secrets are not kept; credentials expire.",
    "src/token.py:12: in parse_token",
    "tests/test_password.py::test_reset PASSED",
    "import secrets\nsecrets.token_hex(16)",
    "key=value sort_key=name primary_key=user_id1",
]


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_goes_and_the_text_around_it_stays(name):
    frame, secret, kind = SECRETS[name]

    assert redact(frame.format(secret)) == frame.format(f"[redacted:{kind}]")


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_goes_in_the_middle_of_anything(name):
    frame, secret, _ = SECRETS[name]
    text = f"some line\n{frame.format(secret)}\nanother line, password-free"

    redacted = redact(text)

    assert secret not in redacted
    assert redacted.startswith("some line\n")


@pytest.mark.parametrize("text", LOOKALIKES, ids=range(len(LOOKALIKES)))
def test_what_only_resembles_a_secret_stays(text):
    assert redact(text) == text
    assert redact_tree({"output": text}) == {"output": text}


def test_there_are_enough_of_both():
    assert len(SECRETS) >= 40
    assert len(LOOKALIKES) >= 40


@pytest.mark.parametrize("name", SECRETS)
def test_redacting_again_changes_nothing(name):
    once = redact(SECRETS[name][0].format(SECRETS[name][1]))

    assert redact(once) == once


pieces = st.lists(
    st.sampled_from(
        [frame.format(secret) for frame, secret, _ in SECRETS.values()]
        + [text for text in LOOKALIKES if len(text) < 200]
        + [
            "password",
            "TOKEN",
            "secret=",
            '"',
            "'",
            "\\",
            ":",
            "=",
            "\n",
            " ",
            "[redacted:token]",
            "]",
            "@",
            "//",
            ",",
            "a1",
        ]
    )
    | st.text(max_size=5),
    max_size=8,
)


@settings(deadline=None, max_examples=400)
@given(pieces)
def test_redacting_any_text_twice_is_redacting_it_once(parts):
    once = redact("".join(parts))

    assert redact(once) == once


@settings(deadline=None)
@given(
    st.sampled_from([s for s in SECRETS if SECRETS[s][0].startswith(("use", "{}", "id", "jwt"))]), st.text(), st.text()
)
def test_a_secret_of_a_known_form_goes_wherever_a_word_can_stand(name, before, after):
    secret = SECRETS[name][1]

    assert secret not in redact(f"{before} {secret} {after}")


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz .,;\n", max_size=300))
def test_plain_prose_stays(text):
    assert redact(text) == text


def test_fields_lose_their_values_by_name():
    tree = {
        "user": "bob",
        "password": "x",
        "apiKey": "abc",
        "tokens": ["one", "two", 3],
        "token_type": "bearer",
        "max_tokens": "4096",
        "max_token": 4096,
        "secret": None,
        "nested": [{"clientSecret": "${SECRET}", "note": "TOKEN=abcd1234"}],
        "credentials": {"username": "bob", "password": "y"},
    }

    assert redact_tree(tree) == {
        "user": "bob",
        "password": "[redacted:password]",
        "apiKey": "[redacted:api-key]",
        "tokens": ["[redacted:token]", "[redacted:token]", 3],
        "token_type": "bearer",
        "max_tokens": "4096",
        "max_token": 4096,
        "secret": None,
        "nested": [{"clientSecret": "${SECRET}", "note": "TOKEN=[redacted:token]"}],
        "credentials": {"username": "bob", "password": "[redacted:password]"},
    }


def test_keys_that_were_secrets_do_not_become_one():
    tree = {"ghp_" + mixed(36): 1, "ghp_" + mixed(40): 2}

    assert sorted(redact_tree(tree).values()) == [1, 2]
    assert not any("ghp_" in key for key in redact_tree(tree))


def test_a_tree_is_not_changed_in_place():
    tree = {"password": "x", "list": ["TOKEN=abcd1234"]}
    before = json.dumps(tree)

    redact_tree(tree)

    assert json.dumps(tree) == before


def test_nothing_hides_in_the_depth():
    tree = "ghp_" + mixed(36)
    for _ in range(5 * MAX_DEPTH):
        tree = [tree]

    assert "ghp_" not in repr(redact_tree(tree))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | pieces.map("".join),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(pieces.map("".join), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(json_values)
def test_any_tree_keeps_its_shape_and_is_redacted_once(tree):
    once = redact_tree(tree)

    assert redact_tree(once) == once
    assert shape(once) == shape(tree)


def shape(value):
    if isinstance(value, dict):
        return [shape(each) for each in value.values()]
    return [shape(each) for each in value] if isinstance(value, list) else type(value)


HOSTILE = [
    "a",
    "password",
    "token=",
    "token='",
    'password_hint="',
    "password_hint=\\'",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\n-----END",
    "eyJ" + "a" * 20 + ".",
    "http://a:",
    "https://",
    "curl -u ",
    "curl ",
    "Bearer a",
    "secret : ",
    "token:f(",
    "password:[",
    'token: "',
    "token=\"'",
    "password: '\\\"",
    "<token>",
    "sk-",
    "AKIAABCDEFGH23456789,",
    "[redacted:token]",
    "login password ",
    "\n",
    " ",
    "-",
]


@pytest.mark.parametrize("piece", HOSTILE, ids=range(len(HOSTILE)))
def test_a_long_hostile_text_is_redacted_to_its_end(piece):
    """Work that grows faster than the text would not end here."""
    redacted = redact(piece * (40_000 // len(piece)) + "\n\npassword=hunter2hunter2")

    assert "hunter2" not in redacted
