"""What waits for a person comes first, and each command that is shown is one that is not refused."""

import msgspec
import pytest

from detent.engine.project import open_project
from tests.support.agent_shell import AgentShell
from tests.support.people import ANN, ME, needs_people
from tests.support.stops import FREE, STOPS, VOTES, Stop, typed


def statuses(detent, *options):
    return detent("status", "--json", *options).ok().json()


def never_refused(detent, tmp_path_factory, stop: Stop, command: str) -> None:
    """The command, in a fresh session of the same situation."""
    fresh = type(detent)(tmp_path_factory.mktemp("fresh"))
    stop.build(fresh.directory)
    ran = fresh(*typed(command))
    assert "error" not in ran.json(), (command, ran.out, ran.err)


@pytest.mark.parametrize("name", STOPS)
def test_every_stop_is_shown_first_with_commands_that_are_not_refused(detent, tmp_path_factory, name):
    kind, stop = STOPS[name]
    stop.build(detent.directory)

    entries = [entry for entry in statuses(detent)["needs"] if entry["kind"] == kind]
    text = detent("status").ok().out

    assert entries
    assert text.startswith("NEEDS YOU\n")
    for entry in entries:
        assert entry["what"]
        assert entry["kind"] == "tasks_left" or entry["since"]
        assert entry["command"] in text.replace("\\\n", "").replace("        ", "")
        for command in (entry["command"], *entry.get("others", ())):
            never_refused(detent, tmp_path_factory, stop, command)


@pytest.mark.parametrize("name", [*STOPS, *FREE])
def test_the_next_commands_are_not_refused(detent, tmp_path_factory, name):
    stop = STOPS[name][1] if name in STOPS else FREE[name]
    stop.build(detent.directory)

    commands = statuses(detent)["next"]

    assert commands
    assert commands == detent("next", "--json").ok().json()["next"]
    for command in commands:
        never_refused(detent, tmp_path_factory, stop, command)


def test_next_says_the_command_of_a_decision_once(detent):
    STOPS["vote"][1].build(detent.directory)

    [entry] = detent("next", "--json").ok().json()["needs"]
    assert detent("next").ok().out.split("\n").count(f"    {entry['command']}") == 1
    assert detent("next").ok().out.count(f"{entry['command']}\n") == 1


@pytest.mark.parametrize("name", FREE)
def test_nothing_needs_a_person_where_nothing_does(detent, name):
    FREE[name].build(detent.directory)

    assert statuses(detent)["needs"] == []
    assert detent("status").ok().out.startswith("WFS-try-it")
    assert detent("decide").ok().out.startswith("nothing waits for you\n")


@pytest.mark.parametrize("name", STOPS)
def test_the_commands_of_a_paused_session_name_it(detent, tmp_path_factory, name):
    kind, stop = STOPS[name]
    stop.build(detent.directory)
    detent("pause").ok()

    entries = statuses(detent, "--session", "WFS-try-it")["needs"]
    fresh = type(detent)(tmp_path_factory.mktemp("fresh"))
    stop.build(fresh.directory)
    fresh("pause").ok()
    [*same] = [entry for entry in entries if entry["kind"] == kind]

    assert same
    assert "WFS-try-it" in same[0]["command"]
    ran = fresh(*typed(same[0]["command"]))
    assert "error" not in ran.json(), (same[0]["command"], ran.out)


@needs_people
def test_a_vote_that_is_cast_waits_for_the_others_and_not_for_me(detent):
    VOTES["my vote is cast"].build(detent.directory)

    [entry] = statuses(detent)["needs"]

    assert entry["waits_for"] == [ANN]
    assert detent("status").ok().out.startswith(f"WAITS FOR {ANN}\n")
    assert not [command for command in statuses(detent)["next"] if "approve" in command]


@needs_people
def test_the_vote_of_another_leaves_mine_open(detent, tmp_path_factory):
    stop = VOTES["another vote is cast"]
    stop.build(detent.directory)

    [entry] = statuses(detent)["needs"]

    assert "waits_for" not in entry
    assert f"{ME} may still vote" in entry["what"]
    never_refused(detent, tmp_path_factory, stop, entry["command"])


@needs_people
def test_after_the_first_of_two_votes_no_second_vote_of_mine_is_suggested(detent):
    VOTES["no vote is cast"].build(detent.directory)

    out = detent("approve", "-m", "fine").ok().out

    assert "detent approve" not in out
    assert "detent why" in out


def test_an_agent_is_told_that_a_person_is_needed_and_what_it_can_do(tmp_path):
    shell = AgentShell(tmp_path)

    text, record = shell.run("detent status").stdout, msgspec.json.decode(shell.run("detent status --json").stdout)

    assert text.startswith("NEEDS A PERSON, who types this in a terminal of their own\n")
    assert "detent approve work --gate approval -m WHY" in text
    assert record["next"] == ["detent why"]
    assert "detent decide" not in text
    refusal = shell.run("detent decide")
    assert refusal.returncode == 1
    assert "decide is for a person" in refusal.stderr


def test_decisions_are_the_same_in_status_next_and_decide(detent):
    STOPS["question with choices"][1].build(detent.directory)

    shown = [detent(verb, "--json").json()["needs"] for verb in ("status", "next", "decide")]

    assert shown[0] == shown[1] == shown[2] != []


def test_a_live_run_keeps_the_decisions_of_people_and_none_of_its_own(tmp_path):
    from detent.core.session.open_decision import View, open_decisions

    STOPS["closed gate"][1].build(tmp_path)
    with open_project(tmp_path) as project:
        handle = project.session()
        assert [entry.kind for entry in open_decisions(handle.state)] == ["closed"]
        assert open_decisions(handle.state, view=View(running=True)) == ()
        handle.escalate("stuck", "work", "it is stuck")
        assert [entry.kind for entry in open_decisions(handle.state, view=View(running=True))] == ["escalation"]


SIDE_BY_SIDE = '{ key = "work", needs = [] }, { key = "other", needs = [] }'


@pytest.mark.parametrize(
    "stop",
    [Stop(lambda _, handle: handle.escalate("stuck", "work", "it is stuck"), phases=SIDE_BY_SIDE), STOPS["review"][1]],
    ids=["escalation", "review"],
)
def test_what_a_refused_begin_says_is_not_refused(detent, tmp_path_factory, stop):
    stop.build(detent.directory)

    way_out = detent("begin").error()[2]
    assert way_out.startswith(("detent resolve retry work", "detent review continue work"))

    for command in way_out.split(" or "):
        never_refused(detent, tmp_path_factory, stop, command)


def test_escalations_show_the_commands_that_decide_them(detent):
    STOPS["escalation"][1].build(detent.directory)

    listed = detent("escalations", "--json").ok().json()

    assert [entry["command"] for entry in listed["needs"]] == [
        entry["command"] for entry in statuses(detent)["needs"] if entry["kind"] == "escalation"
    ]
    assert all(entry["command"] in detent("escalations").ok().out for entry in listed["needs"])
