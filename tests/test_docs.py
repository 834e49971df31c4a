"""The documentation is true: its examples run."""

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from detent.cli.commands import run as run_verb
from detent.cli.commands.ask import TIMEOUT_S
from detent.cli.person import WAITING
from detent.clients.command import TRY_LATER, Result
from detent.config.settings import AgentSettings, RunSettings, parse_settings
from detent.core import limits
from detent.core.run.agent_event import Said, Started, ToolStarted, ToolUsed, Used
from detent.core.run.run_event import End, Need, RunEvent
from detent.engine import run_lease
from detent.process import GRACE_S
from detent.process.conversation import MAX_LINE_BYTES
from detent.render.prompt import prompt
from detent.run import lease, policy
from detent.run import turn as run_turn
from detent.run.agents import adapters, default_agents, make_agent
from detent.store import feed_file
from tests.support.turns import turn

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
STORIES = DOCS / "demo.md"


def test_the_examples_of_the_api_page_run_in_order(tmp_path, monkeypatch, capsys):
    (tmp_path / "shop").mkdir()
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "api.md").read_text(), re.DOTALL)
    assert len(blocks) >= 6

    exec(compile("\n".join(blocks), "docs/api.md", "exec"), {})

    assert "phase_begun" not in capsys.readouterr().err


# What docs/run.md says about runs

RUN = (DOCS / "run.md").read_text()
#: What an agent tells while it works; how it ends is told by what follows.
TOLD_BY_AGENTS = (Started, ToolStarted, ToolUsed, Said, Used)


def section(title: str, *, of: str = RUN) -> str:
    return re.search(rf"^##+ {re.escape(title)}\n(.*?)(?=^##|\Z)", of, re.MULTILINE | re.DOTALL)[1]


def rows(text: str) -> dict[str, str]:
    """The rows of the tables, by the name in their first column."""
    return dict(re.findall(r"^\| `?([^|`]+?)`? \|(.*)\|$", text, re.MULTILINE))


def quoted(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


def tag(event: type[msgspec.Struct]) -> str:
    return str(event.__struct_config__.tag)


@pytest.mark.parametrize("event", [*get_args(RunEvent), *TOLD_BY_AGENTS], ids=tag)
def test_every_event_of_a_run_is_documented_with_its_fields(event):
    fields = set(event.__struct_fields__) - {"at"}

    assert fields <= quoted(rows(section("Events"))[tag(event)])


def test_no_event_is_documented_that_does_not_exist():
    known = {tag(event) for event in (*get_args(RunEvent), *TOLD_BY_AGENTS)}

    assert set(rows(section("Events"))) - {"type", "---"} == known


@pytest.mark.parametrize(("settings", "title"), [(AgentSettings, "Agents"), (RunSettings, "Settings")])
def test_every_setting_of_a_run_is_documented_with_its_default(settings, title):
    told = rows(section(title))

    assert set(told) - {"key", "---"} == set(settings.__struct_fields__)
    for field in msgspec.structs.fields(settings):
        if isinstance(field.default, int | float | str):
            value = field.default if isinstance(field.default, str) else f"{field.default:g}"
            assert told[field.name].rstrip().rsplit("|", 1)[1].strip(" `") == value, field.name


def test_every_exit_code_of_a_run_is_documented():
    codes = {0, WAITING, run_verb.CANCELLED, run_verb.LOST, run_verb.PAUSED}

    assert codes <= {int(code) for code in rows(section("Exit codes")) if code.isdigit()}
    assert {str(end) for end in End} <= quoted(rows(section("Events"))["run_ended"])
    assert {str(need) for need in Need} <= set(rows(section("People")))


def test_the_settings_that_are_shown_can_be_used():
    shown = re.findall(r"```toml\n(.*?)```", RUN, re.DOTALL)
    settings = parse_settings("\n".join(shown), "docs/run.md")

    assert {one.adapter for one in settings.agents.values()} == set(adapters())
    assert settings.run.agents
    for name in default_agents():
        assert f"`{name}`" in section("Agents")


def test_the_calls_of_clients_are_those_that_are_documented(tmp_path):
    told = rows(section("What clients may do"))
    for name in ("claude-code", "codex", "gemini"):
        program, *words = next(iter(re.findall(r"`([^`]+)`", told[name]))).split()
        recorded = tmp_path / name
        stand_in = tmp_path / program
        stand_in.write_text(f'#!/bin/sh\necho "$@" > {recorded}\n')
        stand_in.chmod(0o755)
        agent = make_agent(AgentSettings(adapter=name, command=str(stand_in)))

        list(agent.work(turn(tmp_path), lambda: False))

        assert recorded.read_text().split()[: len(words)] == words


def test_the_result_that_is_shown_has_every_field_that_a_command_can_hand_back():
    [shown] = re.findall(r"```json\n(.*?)```", RUN, re.DOTALL)

    assert set(msgspec.json.decode(shown)) == set(Result.__struct_fields__)
    assert msgspec.json.decode(shown, type=Result).tokens.cost > 0
    assert f"{TRY_LATER} a temporary failure" in RUN


@pytest.mark.parametrize(
    ("what", "values"),
    [
        ("a prompt", [prompt.MAX_BYTES // 1024]),
        ("the failures in a prompt", [prompt.MAX_TAIL_LINES, prompt.MAX_EVIDENCE]),
        ("an agent's summary in the record", [limits.MAX_SUMMARY]),
        ("tool calls of an attempt that are kept one by one", [limits.MAX_TOOLS]),
        ("a line of an agent's output", [MAX_LINE_BYTES // 1024**2]),
        (
            "output of an agent that viewers of a run get",
            [run_turn.SAID_BURST, run_turn.SAID_PER_S, limits.MAX_SAID],
        ),
        ("the longest pause before a retry", [int(policy.pause_before(100, 2.0)), int(policy.MAX_RETRY_AFTER_S)]),
        ("time between SIGTERM and SIGKILL", [int(GRACE_S)]),
        ("how long `detent ask` waits", [int(TIMEOUT_S)]),
        ("the file of the events, `.process/run.jsonl` of the session", [feed_file.MAX_BYTES // 1024**2]),
        ("heartbeat of a runner; other machines take it for dead after", [int(lease.BEAT_S), int(run_lease.LEASE_S)]),
    ],
)
def test_the_limits_that_are_documented_are_those_of_the_code(what, values):
    told = re.search(rf"^\| {re.escape(what)} \|(.*)\|$", RUN, re.MULTILINE)[1]

    assert [int(number) for number in re.findall(r"\d+", told)] == values
