"""Every form of a secret that is known, as people and tools write it. All are made up, and put together here."""

import json

import pytest

from detent.core.redact import redact, redact_tree

MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fX" * 4
HEX = "0123456789abcdef" * 8
UPPER = "AB2CD4EF6GH8JK1LM3NP5QR7" * 4


def mixed(length):
    return MIXED[:length]


def hexadecimal(length):
    return HEX[:length]


BASIC = "YWRhOmNvcnJlY3QtaG9yc2U="

#: The text around the secret, and the secret. The first rows were not found by names and forms that are older.
FORMS = {
    "fly": ("{}", "fo1_" + mixed(43)),
    "fly, macaroon": ("FlyV1 {}", "fm2_" + mixed(80)),
    "Netlify": ("{}", "nfp_" + mixed(36)),
    "Teams webhook": (
        "https://x.webhook.office.com/webhookb2/{}",
        hexadecimal(36) + "@x/IncomingWebhook/" + hexadecimal(32),
    ),
    "crates.io": ("{}", "cio" + mixed(32)),
    "JFrog": ("{}", "AKCp" + mixed(69)),
    "SonarQube": ("{}", "sqp_" + hexadecimal(40)),
    "Buildkite": ("{}", "bkua_" + hexadecimal(40)),
    "Bitbucket": ("{}", "ATBB" + mixed(32)),
    "Bitbucket repository": ("{}", "ATCTT3" + mixed(100)),
    "NuGet": ("{}", "oy2" + "abcdefghij234567" * 2 + "abcdefghijk"),
    "Hugging Face organisation": ("{}", "api_org_" + mixed(34)),
    "Mapbox": ("{}", "sk.eyJ" + mixed(60) + "." + mixed(22)),
    "Contentful": ("{}", "CFPAT-" + mixed(43)),
    "EasyPost": ("{}", "EZAK" + mixed(54)),
    "Shippo": ("{}", "shippo_live_" + hexadecimal(40)),
    "Dynatrace": ("{}", "dt0c01." + UPPER[:24] + "." + UPPER[:64]),
    "Okta": ("Authorization: SSWS {}", "00" + mixed(40)),
    "presigned URL": ("https://b.s3.amazonaws.com/k?X-Amz-Signature={}&X-Amz-Date=1", hexadecimal(64)),
    "key in base64": ("client-key-data: {}", "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo="),
    "key of PuTTY": ("Private-Lines: 2\n{}", mixed(64) + "\n" + mixed(40)),
    "zip -P": ("zip -r -P {} a.zip b", "hunter2"),
    "7z -p": ("7z x -p{} a.7z", "hunter2"),
    "openssl -k": ("openssl enc -aes256 -k {} -in x", "hunter2"),
    "ldapsearch -w": ("ldapsearch -D cn=x -w {} dc=y", "hunter2"),
    "mosquitto -P": ("mosquitto_pub -u x -P {} -t y", "hunter2"),
    "smbclient -U": ("smbclient //h/s -U ada%{}", "hunter2"),
    "httpie -a": ("http -a ada:{} example.com", "hunter2"),
    "twine -p": ("twine upload -u ada -p {} dist/x", "hunter2"),
    "doctl -t": ("doctl auth init -t {}", mixed(40)),
    "gh secret": ("gh secret set TOKEN --body {}", "hunter2hunter2"),
    "kubectl": ("kubectl create secret generic x --from-literal=key={}", "hunter2hunter2"),
    "poetry": ("poetry config http-basic.x ada {}", "hunter2"),
    "sudo -S": ("echo {} | sudo -S ls", "hunter2"),
    "fish": ("set -gx DB_PASSWORD {}", "hunter2"),
    "csh": ("setenv DB_PASSWORD {}", "hunter2"),
    "Dockerfile": ("ENV API_TOKEN {}", "hunter2"),
    "PHP": ("define('DB_PASSWORD', '{}');", "hunter2"),
    "list of variables": ('{{"name": "DB_PASSWORD", "value": "{}"}}', "hunter2hunter2"),
    "DB_PASS": ("DB_PASS={}", "hunter2hunter2"),
    "DB_PASS with a slash": ("DB_PASS={}\n", "hun/ter2,hunter"),
    "SMTP_PWD": ("export SMTP_PWD={}", "hunter2hunter2"),
    "MYSQL_PWD": ("MYSQL_PWD={} mysqldump shop", "hunter2hunter2"),
    "db_pass in YAML": ("db_pass: {}", "hunter2-hunter2"),
    "dbPass in JSON": ('{{"dbPass": "{}"}}', "correct horse"),
    "redis-pw": ("redis-pw={}", "hunter2hunter2"),
    "Docker Hub": ("docker login -u ada, then {}", "dckr_pat_" + mixed(27)),
    "Docker organisation": ("{}", "dckr_oat_" + mixed(30)),
    "DigitalOcean": ("doctl auth init: {}", "dop_v1_" + hexadecimal(64)),
    "DigitalOcean OAuth": ("{}", "doo_v1_" + hexadecimal(64)),
    "Shopify": ("shop: {}.", "shpat_" + hexadecimal(32)),
    "Shopify app": ("{}", "shpss_" + hexadecimal(32)),
    "Linear": ("({})", "lin_api_" + mixed(40)),
    "Notion": ("notion {} used", "ntn_" + mixed(46)),
    "Notion, older": ("notion {} used", "secret_" + mixed(43)),
    "Tailscale": ("tailscale up {}", "tskey-auth-" + mixed(12) + "-" + mixed(32)),
    "Vault": ("vault: {}", "hvs." + mixed(90)),
    "Vault batch": ("{}", "hvb." + mixed(90)),
    "Telegram": ("https://api.telegram.org/bot{}/getMe", "123456789:AA" + mixed(33)),
    "Telegram by itself": ("bot {} is up", "1234567890:AA" + mixed(33)),
    "Discord": ("client.login: {}", "MTIzNDU2Nzg5MDEyMzQ1Njc4." + mixed(6) + "." + mixed(38)),
    "Discord webhook": ("https://discord.com/api/webhooks/123456789012345678/{}", mixed(68)),
    "mysql -p": ("mysql -u root -p{} shop", "hunter2"),
    "mysqldump -p, quoted": ("mysqldump --host db -p'{}' shop", "hunter2"),
    "mariadb -p": ("mariadb -p{}", "hunter2"),
    "Cookie": ("Cookie: {}\nAccept: */*", "sid=" + mixed(20) + "; theme=dark"),
    "Cookie in curl": ("curl -H 'Cookie: {}' https://example.com", "sid=" + mixed(20)),
    "curl -b": ("curl -b '{}' https://example.com", "sid=" + mixed(20)),
    "Set-Cookie": ("Set-Cookie: sid={}; HttpOnly", mixed(20)),
    "Docker auth": ('{{"auths": {{"index.docker.io": {{"auth": "{}"}}}}}}', BASIC),
    "npm _auth": ("//registry.example.com/:_auth={}", BASIC),
    "slash in a URL": ("postgres://ada:{}@db.example.com/shop", "hunter/2/hunter"),
    "two slashes in a URL": ("https://ada:{}@example.com", "a//b/c"),
    "sshpass": ("sshpass -p {} ssh ada@example.com", "hunter2"),
    "redis-cli -a": ("redis-cli -h db -a {} ping", "hunter2"),
    "docker login -p": ("docker login -u ada -p {} example.com", "hunter2"),
    "openssl -passin": ("openssl rsa -in k.pem -passin pass:{}", "hunter2"),
    "htpasswd -b": ("htpasswd -bc .htpasswd ada {}", "hunter2"),
    "Atlassian": ("{}", "ATATT3" + mixed(80)),
    "Grafana": ("{}", "glsa_" + mixed(32) + "_" + hexadecimal(8)),
    "Databricks": ("{}", "dapi" + hexadecimal(32)),
    "Doppler": ("{}", "dp.st.dev." + mixed(40)),
    "Postman": ("{}", "PMAK-" + hexadecimal(24) + "-" + hexadecimal(34)),
    "New Relic": ("{}", "NRAK-" + UPPER[:27]),
    "PlanetScale": ("{}", "pscale_tkn_" + mixed(43)),
    "Supabase": ("{}", "sbp_" + hexadecimal(40)),
    "Figma": ("{}", "figd_" + mixed(40)),
    "Airtable": ("{}", "pat" + mixed(14) + "." + hexadecimal(64)),
    "Mailgun": ("{}", "key-" + hexadecimal(32)),
    "Mailchimp": ("{}", hexadecimal(32) + "-us12"),
    "Square": ("{}", "sq0atp-" + mixed(22)),
    "RubyGems": ("{}", "rubygems_" + hexadecimal(48)),
    "Terraform Cloud": ("{}", mixed(14) + ".atlasv1." + mixed(67)),
    "Pulumi": ("{}", "pul-" + hexadecimal(40)),
    "Sentry": ("{}", "sntrys_" + mixed(60)),
    "Groq": ("{}", "gsk_" + mixed(52)),
    "Replicate": ("{}", "r8_" + mixed(37)),
    "Perplexity": ("{}", "pplx-" + mixed(48)),
    "xAI": ("{}", "xai-" + mixed(80)),
    "age": ("{}", "AGE-SECRET-KEY-1" + (UPPER)[:58]),
    "Azure AD": ("{}", "abc8Q~" + mixed(34)),
    "PASSWORD": ("PASSWORD={}", "hunter2hunter2"),
    "--password": ("tool --password {}", "hunter2hunter2"),
    "apiKey": ('"apiKey": "{}"', mixed(24)),
    "client_secret": ("client_secret={}", mixed(24)),
    "X-Api-Key": ("X-Api-Key: {}", mixed(24)),
    "bearer": ("Authorization: Bearer {}", mixed(24)),
    "basic": ("Authorization: Basic {}", BASIC),
    "URL": ("redis://:{}@cache:6379/0", "hunter2"),
    "curl -u": ("curl -u ada:{} https://example.com", "hunter2"),
    "netrc": ("machine example.com login ada password {}", "hunter2"),
    "OpenAI": ("{}", "sk-proj-" + mixed(60)),
    "Anthropic": ("{}", "sk-ant-api03-" + mixed(90)),
    "GitHub": ("{}", "ghp_" + mixed(36)),
    "GitLab": ("{}", "glpat-" + mixed(20)),
    "Slack": ("{}", "xoxb-" + mixed(30)),
    "AWS": ("{}", "AKIA" + "ABCDEFGH23456789"),
    "Google": ("{}", "AIza" + mixed(35)),
    "npm": ("{}", "npm_" + mixed(36)),
    "PyPI": ("{}", "pypi-" + mixed(80)),
    "Stripe": ("{}", "sk_" + "live_" + mixed(24)),
    "JWT": ("{}", f"eyJ{mixed(20)}.eyJ{mixed(30)}.{mixed(43)}"),
    "connection string": ("Server=db;Uid=ada;Pwd={};", "hunter2"),
}

HARMLESS = (
    "zip -r a.zip b -x p",
    "7z x -y a.7z",
    "http example.com -a",
    "gh secret set TOKEN < token.txt",
    "ENV PWD /app",
    "ENV TOKEN_LIMIT 1000",
    "ENV DB_PASSWORD $SECRET_OF_CI",
    "set -x TOKENS",
    "echo done | sudo tee x",
    "certificate: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM=",
    '{"name": "DB_PASSWORD", "value": "${FROM_VAULT}"}',
    '{"name": "tokens", "value": "many words"}',
    "define('DB_NAME', 'shop');",
    "the oy2 and cio prefixes",
    "Private-Lines: 2",
    "PWD=/home/ada/project",
    "OLDPWD=/tmp",
    "3 tests pass, 2 fail: first_pass=4",
    "the second pass: optimise",
    "bypass=always",
    "compass: north-east-5",
    "mysql -u root -p shop",
    "mysql -P 3306 -h db",
    "mysql --protocol=tcp",
    "docker login --password-stdin -u ada",
    "docker login -u ada example.com",
    "cookie: yes",
    "Accept the cookie policy: it is short",
    "http://localhost:3000/users/@me",
    "https://example.com:8080/a/b@c",
    "git@github.com:ada/shop.git",
    "npm install @types/node@20.1.0",
    '"auth": "required"',
    '"auth": "oauth2-flow"',
    "hvs.rs and dp.st are files",
    "secret_name_of_the_service",
    "shpat_ is the prefix",
    "see key-value stores",
    "the pull-request pul-12",
    "Notes.txt.abcdef is a name",
    "12345678:30 is a place",
    "replace r8_ by r9_",
    "commit " + hexadecimal(40),
    "sha256:" + hexadecimal(64),
    "550e8400-e29b-41d4-a716-446655440000",
    "cert: ok, server_passed = 3",
    "user_passes: 12",
    "redis-cli -a",
    "openssl rsa -in k.pem -passin env:KEY",
)


def test_there_are_at_least_67_forms():
    assert len(FORMS) >= 67


@pytest.mark.parametrize("name", FORMS)
def test_form_is_found_wherever_it_stands(name):
    around, secret = FORMS[name]
    text = around.format(secret)
    for before, after in (("", ""), ("log:\n", "\n"), ("the call was ", "\nand it failed"), ("\t", "\r\n")):
        redacted = redact(before + text + after)
        assert secret not in redacted
        assert "[redacted:" in redacted
        assert redacted.startswith(before)
        assert redacted.endswith(after)
        assert redact(redacted) == redacted


@pytest.mark.parametrize("name", FORMS)
def test_form_is_found_in_a_document(name):
    around, secret = FORMS[name]
    document = {"title": around.format(secret), "context": {"requirements": [around.format(secret)]}}

    assert secret not in json.dumps(redact_tree(document), ensure_ascii=False)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_resembles_a_secret_stays(text):
    assert redact(text) == text


def test_the_end_of_a_key_goes_with_the_body_before_it():
    """Only the last lines of an output are kept, and a key may begin before them."""
    body = "\n".join(mixed(64) for _ in range(3))

    redacted = redact(f"before\n{body}\n-----END OPENSSH PRIVATE KEY-----\nafter")

    assert redacted == "before\n[redacted:private-key]\nafter"
