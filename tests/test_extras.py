"""A refusal for want of an extra names a command that installs it where this Detent is."""

import sys

import pytest

from detent.extras import install_command
from tests.support.project import write


@pytest.mark.parametrize(
    ("left", "command"),
    [
        ("pyvenv.cfg", "pip install 'detent[ui]'"),
        ("pipx_metadata.json", "pipx runpip detent install 'detent[ui]'"),
        ("uv-receipt.toml", "uv pip install --python /tool/bin/python 'detent[ui]'"),
    ],
)
def test_the_command_is_that_of_the_installer(left, command, tmp_path, monkeypatch):
    write(tmp_path, left, "")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/tool/bin/python")

    assert install_command("ui") == command
