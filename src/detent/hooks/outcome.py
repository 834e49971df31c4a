"""The files that an agent's answer names."""

import os

from detent.core.run.result_block import MAX_DELIVERABLES


def named_files(text: str, base: str) -> tuple[str, ...]:
    """The files below `base` that a text names, in its order; for an answer without a list of what was made."""
    names: dict[str, None] = {}
    for word in text.split():
        name = word.strip("`'\"*()[]{}<>,;:!?").rstrip(".").removeprefix(base + "/")
        looks_like_one = "." in name and not name.startswith(("/", "-")) and ".." not in name.split("/")
        if looks_like_one and len(names) < MAX_DELIVERABLES and os.path.isfile(os.path.join(base, name)):
            names[name] = None
    return tuple(names)
