"""Doctor's look at plugins: whether a client has one, and whether the program that it starts is still there."""

import json
import sys

import pytest

from detent.clients.installing import findings
from detent.clients.installing.plans import HOOK
from detent.clients.installing.plugins import clients_with_plugin, plugins_beside_hooks
from detent.clients.installing.programs import record_program
from detent.clients.registry import CLIENTS

#: As the clients themselves leave them.
INSTALLED = {
    "claude-code": (".claude/plugins/installed_plugins.json", '{"version": 2, "plugins": {"detent@detent": [{}]}}'),
    "codex": (".codex/config.toml", '[plugins."detent@detent"]\nenabled = true\n'),
    "gemini": (".gemini/extensions/detent/gemini-extension.json", '{"name": "detent"}'),
}


class Account:
    def __init__(self, root):
        self.home, self.root = root / "home", root / "home/project"
        self.root.mkdir(parents=True)
        self.environment = {"HOME": str(self.home), "PATH": str(root / "nothing")}

    def install(self, client):
        path, text = INSTALLED[client]
        (self.home / path).parent.mkdir(parents=True, exist_ok=True)
        (self.home / path).write_text(text)

    def record(self, python=sys.executable, hook=HOOK):
        record_program(str(self.home / ".local/state/detent"), str(self.root), python=python, hook=hook)

    def said(self):
        return [finding.message for finding in findings(str(self.root), environment=self.environment)]


@pytest.fixture
def account(tmp_path):
    return Account(tmp_path)


def test_without_a_plugin_it_says_nothing_about_programs(account):
    account.record(python="/gone/python")

    assert account.said() == []


@pytest.mark.parametrize("client", INSTALLED)
def test_a_plugin_without_a_program_is_told(account, client):
    account.install(client)
    title = CLIENTS[client].title

    assert [each.name for each in clients_with_plugin(account.environment)] == [client]
    assert account.said() == [f"the plugin of {title} does nothing: no program is recorded for it, and none is on PATH"]


def test_a_recorded_program_that_is_there_is_enough(account):
    account.install("codex")
    account.record()

    assert account.said() == []


@pytest.mark.parametrize(("python", "hook"), [("/gone/bin/python", HOOK), (sys.executable, "/gone/hooks/fast.py")])
def test_a_recorded_program_that_is_gone_is_named(account, python, hook):
    account.install("claude-code")
    account.record(python=python, hook=hook)

    [message] = account.said()
    assert "/gone/" in message
    assert "which a person recorded" in message


@pytest.mark.parametrize("is_there", [True, False])
def test_a_clone_that_is_gone_is_named_because_the_client_does_not_say_so(account, tmp_path, is_there):
    account.install("claude-code")
    account.record()
    clone = tmp_path / "clone"
    listed = {"detent": {"source": {"source": "directory", "path": str(clone)}, "installLocation": str(clone)}}
    (account.home / ".claude/plugins/known_marketplaces.json").write_text(json.dumps(listed))
    if is_there:
        clone.mkdir()

    told = f"Claude Code does not load the plugin: {clone}, where it was installed from, is gone"
    assert account.said() == ([] if is_there else [told])


@pytest.mark.parametrize("text", ["", "[]", '{"detent": 1}', '{"detent": {}}', "{"])
def test_a_list_of_marketplaces_that_cannot_be_read_says_nothing(account, text):
    account.install("claude-code")
    account.record()
    (account.home / ".claude/plugins/known_marketplaces.json").write_text(text)

    assert account.said() == []


def test_the_program_of_another_project_is_none_of_its_business(account, tmp_path):
    account.install("claude-code")
    account.record()
    other = tmp_path / "home/other"
    record_program(str(account.home / ".local/state/detent"), str(other), python=str(other / "bin/python"), hook=HOOK)

    assert account.said() == []


def test_a_directory_that_the_environment_names_counts(account, tmp_path):
    account.environment |= {"CODEX_HOME": str(tmp_path / "elsewhere")}
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/config.toml").write_text(INSTALLED["codex"][1])

    assert [each.name for each in clients_with_plugin(account.environment)] == ["codex"]


def test_both_at_once_are_named_and_no_problem(account):
    account.install("claude-code")
    account.record()
    (account.root / ".claude").mkdir()
    (account.root / ".claude/settings.json").write_text('{"hooks": "/x/detent/hooks/fast.py"}')

    [sentence] = plugins_beside_hooks(str(account.root), account.environment)
    assert sentence == "Claude Code has the plugin and the hooks of this project; the hooks of the project answer"
