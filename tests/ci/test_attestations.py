"""Attestations, read and verified by the libraries of others: in-toto-attestation and securesystemslib."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.branch import branch, bundle, record

#: Runs in the environment of others: nothing of Detent is in it.
VERIFIER = """
import json, sys
from google.protobuf import json_format
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.predicates.test_result.v0 import test_result_pb2
from in_toto_attestation.predicates.vsa.v1 import vsa_pb2
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

file, public = sys.argv[1:]
crypto = load_pem_public_key(open(public, "rb").read())
kinds = {"https://in-toto.io/attestation/test-result/v0.1": test_result_pb2.TestResult,
         "https://slsa.dev/verification_summary/v1": vsa_pb2.VerificationSummary}
seen = []
for line in open(file):
    data = json.loads(line)
    key = SSlibKey.from_crypto(crypto, data["signatures"][0]["keyid"])
    sealed = Envelope.from_dict(data)
    sealed.verify([key], 1)
    made = json_format.Parse(sealed.payload, statement_pb2.Statement())
    Statement.copy_from_pb(made).validate()
    message = kinds.get(made.predicate_type)
    if message is not None:
        fields = json_format.MessageToDict(made.predicate)
        # The specification has a list here, and the message of this library one text.
        fields["verifiedLevels"] = ",".join(fields.get("verifiedLevels", []))
        json_format.ParseDict(fields, message(), ignore_unknown_fields=True)
    seen.append([made.predicate_type, json_format.MessageToDict(made.predicate)])
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    tool = branch(tmp_path_factory.mktemp("attested") / "project")
    tool("approve", "work", "--gate", "command", "-m", "looked at it").ok()
    record(tool)
    return tool


#: Seals a PEM key as `cosign generate-key-pair` does, with the secret box of NaCl.
SEAL = """
import base64, hashlib, json, os, sys
from cryptography.hazmat.primitives import serialization
from nacl.secret import SecretBox
key = serialization.load_pem_private_key(open(sys.argv[1], "rb").read(), None)
der = key.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
salt, nonce = os.urandom(32), os.urandom(24)
box = SecretBox(hashlib.scrypt(b"pass", salt=salt, n=65536, r=8, p=1, maxmem=1 << 28, dklen=32))
text = lambda data: base64.b64encode(data).decode()
sealed = {"kdf": {"name": "scrypt", "params": {"N": 65536, "r": 8, "p": 1}, "salt": text(salt)},
          "cipher": {"name": "nacl/secretbox", "nonce": text(nonce)},
          "ciphertext": text(box.encrypt(der, nonce).ciphertext)}
body = base64.encodebytes(json.dumps(sealed).encode()).decode()
print("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\\n" + body + "-----END ENCRYPTED SIGSTORE PRIVATE KEY-----")
"""


def make_cosign_key(directory: Path, python: Path) -> Path:
    sealed = subprocess.run(
        [python, "-c", SEAL, make_key(directory, "pem")], capture_output=True, text=True, check=True
    )
    path = directory / "cosign.key"
    path.write_text(sealed.stdout)
    return path


def make_key(directory: Path, kind: str) -> Path:
    path = directory / f"key-{kind}"
    if kind == "pem":
        command = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(path)]
    else:
        command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa", "pem", "cosign"])
def test_others_verify_the_signatures_and_read_the_statements(tmp_path, python, published, kind):
    key = make_cosign_key(tmp_path, python) if kind == "cosign" else make_key(tmp_path, kind)
    out, public = tmp_path / "all.intoto.jsonl", tmp_path / "key.pem"
    if kind == "cosign":
        wrong = published("attest", "--key", str(key), COSIGN_PASSWORD="guess")
        assert "the password does not open the key file" in wrong.err

    published(
        "attest",
        str(bundle(published)),
        "--key",
        str(key),
        "-o",
        str(out),
        "--public-key",
        str(public),
        COSIGN_PASSWORD="pass",
    ).ok()
    ran = subprocess.run([python, "-c", VERIFIER, out, public], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    statements = json.loads(ran.stdout)
    assert [kind.rpartition("/")[0].rpartition("/")[2] for kind, _ in statements[:1]] == ["verification_summary"]
    by_kind = [kind for kind, _ in statements]
    assert by_kind.count("https://in-toto.io/attestation/test-result/v0.1") == 3
    assert by_kind.count("urn:detent:attestation:decision:v0.1") == 1
    [decision] = [predicate for kind, predicate in statements if "decision" in kind]
    assert (decision["decision"], decision["gate"], decision["reason"]) == ("approve", "command", "looked at it")
    assert decision["proof"]["assurance"] == "attended"
    assert statements[0][1]["verificationResult"] == "PASSED"


def test_a_changed_statement_is_refused_by_others(tmp_path, python, published):
    key, out, public = make_key(tmp_path, "ed25519"), tmp_path / "all.intoto.jsonl", tmp_path / "key.pem"
    published("attest", str(bundle(published)), "--key", str(key), "-o", str(out), "--public-key", str(public)).ok()
    line = json.loads(out.read_text().splitlines()[0])
    line["payload"] = ("A" if line["payload"][40] != "A" else "B").join((line["payload"][:40], line["payload"][41:]))
    out.write_text(json.dumps(line) + "\n")

    ran = subprocess.run([python, "-c", VERIFIER, out, public], capture_output=True, text=True, check=False)

    assert ran.returncode != 0
    assert "VerificationError" in ran.stderr


def test_a_record_that_does_not_hold_is_attested_as_failed_and_nothing_else(published, tmp_path):
    strict = tmp_path / "strict.toml"
    strict.write_text('[decisions]\nassurance = "signed"\n' + (published.directory / "detent.toml").read_text())

    ran = published("attest", str(bundle(published)), "--unsigned", "--settings", str(strict))

    [line] = ran.out.splitlines()
    assert ran.code == 1
    assert json.loads(line)["predicate"]["verificationResult"] == "FAILED"


def test_a_key_that_cannot_sign_is_named(published, tmp_path):
    (tmp_path / "not-a-key").write_text("hello")
    (tmp_path / "cosign.key").write_text("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n")
    secret = {"DETENT_KEY_PASSWORD": "x"}

    assert "is no private key" in published("attest", "--key", str(tmp_path / "not-a-key")).err
    assert "has a password" in published("attest", "--key", str(tmp_path / "cosign.key")).err
    assert "no key of cosign" in published("attest", "--key", str(tmp_path / "cosign.key"), **secret).err
    assert "there is no key file" in published("attest", "--key", str(tmp_path / "gone")).err
    assert published("attest").code == 2
