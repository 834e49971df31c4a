"""Every tool that the guard judges, or that can change something, reaches the hook by a matcher of its client."""

import re

import pytest

from detent.clients.registry import CLIENTS, dialect, with_hooks

JUDGED = ("delegate", "message", "shell", "write", "skill", "mcp")
CHANGING = ("delegate", "message", "shell", "write", "mcp", "wait", "todo")
#: Tools under other names than those of the dialect.
OTHERS = {
    "claude-code": ("mcp__fs__write_file", "mcp__plugin_a_b__ping"),
    "codex": (
        "mcp__fs__write_file",
        "multi_agent_v1send_input",
        "multi_agent_v1spawn_agent",
        "multi_agent_v1wait_agent",
    ),
    "gemini": ("mcp_fs_write_file",),
}
#: Codex presents them to its hooks as `Bash`.
AS_BASH = ("exec_command", "shell")


def tools(client, kinds):
    known = dialect(client)
    names = (*known.TOOLS, *OTHERS[client])
    return [name for name in names if known.kind(name) in kinds and name not in AS_BASH and name != "update_plan"]


def matched(client, event):
    matchers = CLIENTS[client].load("installation").INSTALLATION.hooks.events[event]
    return lambda tool: any(re.fullmatch(matcher, tool) for matcher in matchers)


@pytest.mark.parametrize("client", with_hooks())
def test_what_is_judged_is_matched_before_it_runs(client):
    reaches = matched(client, "BeforeTool" if client == "gemini" else "PreToolUse")

    assert [tool for tool in tools(client, JUDGED) if not reaches(tool)] == []


@pytest.mark.parametrize("client", with_hooks())
def test_what_can_change_something_is_matched_after_it_ran(client):
    reaches = matched(client, "AfterTool" if client == "gemini" else "PostToolUse")

    assert [tool for tool in tools(client, CHANGING) if not reaches(tool)] == []


def test_a_patch_is_read_as_replacements():
    patch = (
        "*** Begin Patch\n*** Update File: a.json\n@@ x\n one\n-two\n+three\n@@\n-four\n+five\n"
        "*** Add File: b.json\n+{}\n*** Delete File: c.json\n*** End Patch"
    )

    assert dialect("codex").edited("apply_patch", {"command": patch}) == [
        ("a.json", "one\ntwo\n", "one\nthree\n", False),
        ("a.json", "four\n", "five\n", False),
        ("b.json", "", "{}\n", False),
        ("c.json", "", "", False),
    ]


def test_the_texts_of_an_mcp_call_are_read_in_order_and_to_a_limit():
    call = dialect("claude-code").call({
        "cwd": "/p",
        "tool_name": "mcp__sh__run",
        "tool_input": {"argv": ["detent", "approve"], "more": {"path": "x", "n": 1}},
    })  # fmt: skip
    many = dialect("claude-code").call({"tool_name": "mcp__a__b", "tool_input": {"x": ["y"] * 5_000}})

    assert (call["kind"], call["text"], call["reads"]) == ("mcp", "detent\napprove\nx", False)
    assert call["paths"] == ("/p/detent", "/p/approve", "/p/x")
    assert len(many["paths"]) == 1_000


@pytest.mark.parametrize(
    ("client", "tool", "reads"),
    [
        ("claude-code", "mcp__fs__read_file", True),
        ("claude-code", "mcp__fs__list_directory", True),
        ("claude-code", "mcp__read__write_file", False),
        ("claude-code", "mcp__fs__get_and_delete", False),
        ("claude-code", "mcp__fs__apply", False),
        ("gemini", "mcp_fs_read_file", True),
        ("gemini", "mcp_fs_edit_file", False),
    ],
)
def test_a_tool_reads_if_its_name_says_so_and_nothing_else(client, tool, reads):
    assert dialect(client).call({"tool_name": tool, "tool_input": {}})["reads"] is reads
