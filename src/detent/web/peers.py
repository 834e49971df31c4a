"""The program at the other end of a connection: a browser that a person started, or a program of an agent.

A token can be copied. So the process that posts is judged as that of a decision at a terminal: no agent started it, and
it has no mark of one. What cannot be read is recorded as unknown.
"""

from detent.core.actor import chain_text
from detent.engine.actor import agent_behind
from detent.engine.agents.ancestry import ancestry
from detent.errors import Refused
from detent.web.sockets import peer


def check_peer(host: str, port: int, server_port: int) -> str:
    """The programs behind the connection, nearest first; `Refused` if an agent is one of them."""
    pid = peer(host, port, server_port)
    if pid is None:
        return "an unknown program"
    sign = agent_behind(pid)
    if sign is not None:
        raise Refused(
            f"the page was used by a program of an agent ({sign.describe()})",
            way_out="decide in a browser that no agent started, or in a terminal of your own",
        )
    return chain_text(ancestry(pid))
