"""Extras: packages that only a part of Detent needs, such as those of the page."""

import os
import sys


def install_command(extra: str) -> str:
    """The command that adds an extra to the environment of this Detent.

    pipx and uv leave a file in an environment that they made for a tool.
    """
    package = f"'detent[{extra}]'"
    if os.path.exists(os.path.join(sys.prefix, "pipx_metadata.json")):
        return f"pipx runpip detent install {package}"
    if os.path.exists(os.path.join(sys.prefix, "uv-receipt.toml")):
        return f"uv pip install --python {sys.executable} {package}"
    return f"pip install {package}"
