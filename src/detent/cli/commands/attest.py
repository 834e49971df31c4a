"""`attest`: writes what a record shows as signed in-toto statements."""

import os
from typing import TYPE_CHECKING

import click

from detent.cli.commands.verify import demands_of
from detent.cli.request import Request, Usage, last_session, write_bytes, write_file
from detent.cli.verb import session_option, verb
from detent.core.counted import counted

if TYPE_CHECKING:
    from detent.doctor.attesting import Attested

_DOES_NOT_HOLD = 1


@verb("attest", example="detent attest login.bundle --key ~/.ssh/ci_ed25519 -o login.intoto.jsonl")
@click.argument("bundle", metavar="[BUNDLE]", required=False)
@click.option("--key", "key_file", metavar="FILE", help="The private key that signs: OpenSSH, PEM, or of cosign.")
@click.option("--unsigned", is_flag=True, help="Write the statements alone, without envelopes and signatures.")
@click.option("-o", "--output", metavar="FILE", help="The file; without it, standard output.")
@click.option("--public-key", metavar="FILE", help="Write the public key here too, as PEM.")
@click.option("--approvers", metavar="FILE", help="The approvers whose signatures count.")
@click.option("--settings", metavar="FILE", help="The detent.toml that the session must have kept to.")
@session_option
def attest_verb(
    request: Request,
    bundle: str | None,
    *,
    key_file: str | None,
    unsigned: bool,
    output: str | None,
    public_key: str | None,
    approvers: str | None,
    settings: str | None,
    session: str | None,
) -> int:
    """Write what a record shows as signed in-toto statements.

    One line is one envelope (DSSE): the summary of the verification, the result of each check, and each decision of a
    person with its proof. BUNDLE is a file of detent export bundle; without it, the active or last session. If the
    record does not hold, the summary says FAILED and stands alone, and the exit code is 1.
    """
    import msgspec

    from detent.core.attestation.envelope import envelope, payload
    from detent.engine.key_files import read_key

    if unsigned == (key_file is not None):
        raise Usage("--key FILE signs the statements", way_out="name a key, or say --unsigned")
    if bundle is not None and session is not None:
        raise Usage("name a bundle or a session, not both", way_out="detent attest --help")
    if public_key is not None and key_file is None:
        raise Usage("--public-key is that of --key", way_out="name a key")
    path = None if key_file is None else os.path.join(request.directory, os.path.expanduser(key_file))
    key = None if path is None else read_key(path, os.environ)
    attested = _attested(request, bundle, session, approvers, settings)
    lines = []
    for made in attested.statements:
        data = payload(made)
        lines.append(data if key is None else msgspec.json.encode(envelope(data, (key.sign(data),))))
    written = b"".join(line + b"\n" for line in lines)
    if key is not None and public_key is not None:
        write_file(request, public_key, key.public)
    if output is None:
        write_bytes(written)
    else:
        write_file(request, output, written)
        kinds = [str(made["predicateType"]) for made in attested.statements]
        holds = attested.verification.is_sound
        request.answer(
            lambda canvas: "\n".join(
                canvas.wrap(f"{output}: {counted(len(kinds), 'statement')} about {attested.verification.session}")
                + ([] if holds else canvas.wrap("the record does not hold; detent verify says why"))
            ),
            {
                "session": attested.verification.session,
                "holds": holds,
                "output": output,
                "statements": kinds,
                "keyid": key.keyid if key is not None else None,
            },
        )
    return 0 if attested.verification.is_sound else _DOES_NOT_HOLD


def _attested(
    request: Request, bundle: str | None, session: str | None, approvers: str | None, settings: str | None
) -> "Attested":
    from datetime import UTC, datetime

    from detent.doctor.attesting import attest
    from detent.doctor.record import BundleRecord, StoreRecord
    from detent.engine.bundles import bundle_file
    from detent.engine.bundles.git_tree import git_tree

    demands = demands_of(request, approvers, settings, "attended", None, completed=False)
    now = datetime.now(UTC)
    if bundle is not None:
        with bundle_file.opened(os.path.join(request.directory, bundle)) as reader:
            reader.verify(request.progress("checking bytes"))
            record = BundleRecord(reader)
            return attest(record, demands, git=record.git, at=now)
    with request.reading() as project:
        if demands.approvers is None:
            demands = demands._replace(approvers=project.approvers.read())
        own = StoreRecord(project, last_session(project, session).id)
        return attest(own, demands, git=git_tree(project.place.base, request.notices), at=now)
