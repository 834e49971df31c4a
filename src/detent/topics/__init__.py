"""The concept pages: Markdown files that `detent help TOPIC` shows and the documentation includes."""

#: In the order in which they are listed.
TOPICS = ("journal", "phases", "gates", "decisions", "checkpoints")
