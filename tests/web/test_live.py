"""Streams of the journal: every commit once and in order, whatever happens to the server and however many look."""

from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from detent.engine.project import open_project
from tests.support.page import Page, free_port, opened
from tests.support.waiting import wait_until


def commit(root, count=1, label="Task"):
    with open_project(root) as project:
        for number in range(count):
            project.session("WFS-try-it").tasks.add(f"{label} {number}")


def versions(messages, count=None):
    """The versions of the next commits of a stream; of all that come without a count."""
    commits = (message for message in messages if message.event == "commit")
    return [message.data["commit"]["version"] for message in islice(commits, count)]


def test_a_stream_begins_behind_the_version_that_the_page_has(page, base, root):
    commit(root, 4)

    with page.stream(f"{base}/events?after=2") as messages:
        seen = list(islice((message for message in messages if message.event == "commit"), 3))

    assert [(message.id, message.data["commit"]["version"]) for message in seen] == [("3", 3), ("4", 4), ("5", 5)]
    with page.stream(f"{base}/events", **{"Last-Event-ID": "4"}) as messages:
        assert versions(messages, 1) == [5]


def test_commits_of_other_processes_arrive_while_the_page_looks(page, base, root):
    with page.stream(f"{base}/events?after=1") as messages:
        commit(root, 2)
        first = versions(messages, 2)
        commit(root)

        assert [*first, *versions(messages, 1)] == [2, 3, 4]


def test_every_commit_comes_once_although_the_server_is_killed_and_started_again(root, base):
    port = free_port()
    page = Page(root, "--port", str(port))
    seen: list[int] = []
    try:
        for round_ in range(3):
            with page.stream(f"{base}/events?after={seen[-1] if seen else 1}") as messages:
                commit(root, 3, f"Round {round_}")
                seen += versions(messages, 2)
                page.kill()
                commit(root, 2, f"Without a server {round_}")
                # What was on its way when the server died has arrived.
                seen += versions(messages)
            page = Page(root, "--port", str(port), token=page.token)
        with page.stream(f"{base}/events?after={seen[-1]}") as messages:
            while seen[-1] < 16:
                seen += versions(messages, 1)
    finally:
        page.kill()

    assert seen == list(range(2, 17))


def test_eight_pages_see_the_same(page, base, root):
    def look(_number):
        with page.stream(f"{base}/events?after=1") as messages:
            return versions(messages, 5)

    with ThreadPoolExecutor(8) as threads:
        looking = [threads.submit(look, number) for number in range(8)]
        commit(root, 5)
        assert [each.result() for each in looking] == [[2, 3, 4, 5, 6]] * 8


def test_one_stream_tells_of_many_sessions_and_of_changes_elsewhere(page, base, root):
    _, _, _, project, _, session = base.split("/")
    with open_project(root) as opened_project:
        other = opened_project.start("short", "another one").id

    with page.stream(f"/api/events?s={project}/{session}@1") as messages:
        assert next(messages).data == {"project": None, "session": None}
        with open_project(root) as opened_project:
            opened_project.session(other).cancel("enough")
        changed = (message for message in messages if message.event == "changed")
        seen = next(message for message in changed if message.data["project"] == project)
        with open_project(root) as opened_project:
            opened_project.sessions.resume(session)
            opened_project.session(session).tasks.add("A task")
        committed = next(message for message in messages if message.event == "commit")

    assert seen.data["session"] == other
    assert committed.id == f"{project}/{session}@{committed.data['commit']['version']}"


def test_a_version_that_the_journal_never_had_is_told(page, base):
    with page.stream(f"{base}/events?after=99") as messages:
        first = next(messages)

    assert first.event == "reset"
    assert "commit 1" in first.data["message"]


def test_a_stream_needs_a_token_a_session_and_a_number(page, base):
    assert page.raw("GET", f"{base}/events").error[:2] == (403, "unauthorized")
    assert page.get(f"{base}-none/events").error[0] == 404
    assert page.get(f"{base}/events", after="x").error[0] == 400
    many = "&".join(f"s={number}" for number in range(40))
    assert page.get(f"/api/events?{many}").error[0] == 400


def test_the_server_stops_although_pages_look(root, base):
    with opened(root) as page, page.stream(f"{base}/events") as messages:
        page.process.terminate()
        # The stream ends, and the server does not wait for it.
        for _ in messages:
            pass
        wait_until(lambda: page.process.poll() is not None, 10)


def test_a_later_viewer_gets_what_came_while_nobody_looked(page, base, root):
    with page.stream(f"{base}/events?after=1") as messages:
        commit(root)
        assert versions(messages, 1) == [2]
    commit(root, 2)
    with page.stream(f"{base}/events?after=2") as messages:
        assert versions(messages, 2) == [3, 4]
