"""`adopt`: adopts edits of documents that were made by hand."""

from detent.cli.request import Request
from detent.cli.verb import verb


@verb("adopt", example="detent adopt")
def adopt_verb(request: Request) -> None:
    """Adopt edits made by hand, now.

    Every verb that changes something does this first. An edit that cannot be adopted is kept beside the document, and
    the answer gives the reasons.
    """
    with request.changing(adopt=False) as project:
        adoptions = project.reconcile(every=True)
    text = "\n".join(adoption.describe() for adoption in adoptions) or "nothing was edited by hand"
    request.answer(lambda _: text, {"adoptions": adoptions})
