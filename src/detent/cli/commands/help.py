"""`help`: shows the help of a verb, the list of verbs, or a concept page."""

import click

from detent.cli.request import Request, write_text
from detent.cli.verb import check_known, verb
from detent.topics import TOPICS


@verb("help", example="detent help approve")
@click.argument("words", nargs=-1, metavar="[VERB|TOPIC]...")
def help_verb(request: Request, words: tuple[str, ...]) -> None:
    """Show the help of a verb, or explain a topic.

    Without an argument, list the verbs and topics. A topic is a concept, such as gates. Where a verb has the same name,
    the page of the topic stands above its help.
    """
    from detent.cli.app import VERBS, invoke

    check_known(list(words[:1]), [*VERBS, *TOPICS], what="verb or topic", help_of="detent help")
    topic = words[0] if len(words) == 1 and words[0] in TOPICS else None
    if topic is not None:
        page = topic_page(topic)
        request.answer(lambda _: page, {"topic": topic, "text": page})
    if topic is None or (topic in VERBS and not request.json):
        if topic is not None:
            write_text("")
        invoke([*words, "--help"], request)


def topic_page(topic: str) -> str:
    """The text of a concept page, as a terminal shows it."""
    from importlib.resources import files

    text = files("detent.topics").joinpath(f"{topic}.md").read_text("utf-8")
    paragraphs = (part for part in text.split("\n\n") if not part.startswith("!["))
    return "\n\n".join(paragraphs).removeprefix("# ").replace("**", "").rstrip("\n")
