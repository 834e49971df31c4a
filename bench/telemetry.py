"""What telemetry costs a run: a collector that hangs, and one that answers, each in turns with a run without any."""

import os
from contextlib import ExitStack

from bench.measure import Setting, interleave, say, seconds_each
from bench.runner import COMMAND, Chain
from bench.table import Goal, Row, Section
from detent.config.settings import Settings, TelemetrySettings
from detent.core.run.run_event import RunEvent, RunStarted
from detent.run.agents import make_agent
from detent.run.outbox import Outbox, open_outbox
from tests.support.receiver import hanging, receiving

#: A run may take a twentieth longer: less than that is noise here.
_NOTHING = Goal(1.05)


def telemetry(setting: Setting) -> Section:
    phases, rounds = setting.pick(50, 15), setting.pick(15, 5)
    rows: list[Row] = []
    with ExitStack() as opened:
        hung, answering = opened.enter_context(hanging()), opened.enter_context(receiving())
        for name, url in (("hangs", hung), ("answers", answering.url)):
            say(f"{phases} phases with a collector that {name}")
            ours = Chain(os.path.join(setting.directory, name), phases, make_agent(COMMAND))
            bare = Chain(os.path.join(setting.directory, f"{name}-bare"), phases, make_agent(COMMAND))
            with ours.project, bare.project:
                pair = interleave(
                    lambda ours=ours, url=url: seconds_each(lambda: _run(ours, url), 1),  # type: ignore[misc]
                    lambda bare=bare: seconds_each(bare.run, 1),  # type: ignore[misc]
                    rounds=rounds,
                )
            rows.append(Row(what=f"run, collector that {name} : none", unit="s", **pair._asdict(), goal=_NOTHING))
    return Section(
        name="telemetry",
        rows=tuple(rows),
        remarks=(f"a run of {phases} phases by the agent `true`, from its start to its end, with what it waits for",),
    )


def _run(chain: Chain, url: str) -> None:
    outboxes: list[Outbox] = []
    settings = Settings(telemetry=TelemetrySettings(endpoint=url))

    def tell(event: RunEvent) -> None:
        if isinstance(event, RunStarted):
            opened = open_outbox(settings, chain.project.store, event.session, "bench", {})
            assert opened is not None
            outboxes.append(opened)
        for outbox in outboxes:
            outbox.wake()

    chain.run(tell)
    for outbox in outboxes:
        outbox.close()
