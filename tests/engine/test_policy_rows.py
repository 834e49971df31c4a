"""Every command and every event is listed as a person's decision, or is declared here as open to every actor."""

from typing import get_args

from detent.core.session.commands import Command
from detent.core.session.events import Event
from detent.engine.policy import RULES

OPEN_COMMANDS = """
    Begin Finish Fail Redo Complete CheckGate RecordAgentStarted RecordAgentEnded Ask Escalate TakeCheckpoint WriteTasks
    SplitTask RemoveTask MoveTask RepairTask SetComplexity Pause Resume RecordBaseline Reopen Archive SetRunOptions
    RecordSettings
"""
OPEN_EVENTS = """
    SessionStarted PhaseBegun PhaseRedone PhaseFinished PhaseFailed PhaseReset GateChecked AgentLaunched AgentEnded
    QuestionAsked EscalationRaised SessionCompleted SessionPaused SessionResumed SessionReopened SessionArchived
    DocumentAdopted TailDropped CheckpointTaken TaskWritten TaskRemoved TaskMoved ComplexitySet BaselineRecorded
    RunOptionsSet SettingsChanged
"""
ADVICE = "add a row to RULES in engine/policy.py if only a person may decide this; else declare it here as open"


def test_every_command_is_a_decision_or_open_to_every_actor():
    decided = {command.__name__ for rule in RULES for command in rule.commands}
    commands = {command.__name__ for command in get_args(Command)}

    assert commands - decided - set(OPEN_COMMANDS.split()) == set(), ADVICE


def test_every_event_is_a_decision_or_open_to_every_actor():
    decided = {event.__name__ for rule in RULES for event in rule.events}
    events = {event.__name__ for event in get_args(Event)}

    assert events - decided - set(OPEN_EVENTS.split()) == set(), ADVICE
