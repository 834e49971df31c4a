"""The documentation is true: its examples run."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def test_the_examples_of_the_api_page_run_in_order(tmp_path, monkeypatch, capsys):
    (tmp_path / "shop").mkdir()
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "api.md").read_text(), re.DOTALL)
    assert len(blocks) >= 6

    exec(compile("\n".join(blocks), "docs/api.md", "exec"), {})

    assert "phase_begun" not in capsys.readouterr().err


def test_the_demo_is_held_by_its_gates_and_ends_the_session():
    done = subprocess.run(
        [sys.executable, ROOT / "examples/demo.py"], capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stdout[-2000:]
    for told in (
        "artifacts is FAIL",
        "tests is FAIL",
        "tests is STALE: wallet.py changed",
        "8/8 phases",
        "all is well",
    ):
        assert told in done.stdout


def test_the_story_of_a_rollback_is_told_as_it_happens():
    done = subprocess.run(
        [sys.executable, ROOT / "examples/rollback.py"], capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told = re.sub(r"after \d+s", "after 0s", re.sub(r"\b\d\d:\d\d\b", "14:02", done.stdout)).strip()
    assert f"```\n{told}\n```" in (ROOT / "README.md").read_text()
