"""A client that Detent does not know: its dialect, its installation and its adapter, registered by the last line.

Nothing of it is like the clients that come with Detent. The hook process imports this file without installed packages,
so everything beyond builtins is imported where it is used.
"""

from _json import encode_basestring_ascii as quote

from detent.clients.dialect import Dialect, json_fields
from detent.clients.registry import Client, register

CONF = ".acme/agent.conf"


class AcmeDialect(Dialect):
    EVENTS = {"before": "pre_tool", "after": "post_tool", "hello": "session_start"}  # noqa: RUF012
    TOOLS = {"sh": "shell", "put": "write", "helper": "delegate"}  # noqa: RUF012
    HEARD = ("before", "after", "hello")

    def read(self, payload):
        tool, given = payload.get("do", ["", {}])
        return {
            "hook_event_name": payload["event"],
            "session_id": payload.get("talk", ""),
            "cwd": payload["dir"],
            "tool_name": tool,
            "tool_input": given,
            "tool_response": payload.get("came", ""),
        }

    def deny(self, reason):
        return f'{{"no":{quote(reason)}}}'

    def tell(self, event_name, text):
        return f'{{"hear":{quote(text)},"at":{quote(event_name)}}}'

    def shell_result(self, payload):
        result = json_fields(payload["tool_response"])
        return result.get("out", ""), result.get("code")


DIALECT = AcmeDialect()


class AcmeInstallation:
    """One line in a configuration that is no JSON."""

    oldest = (1, 0)

    def parts(self, invocation):
        import shlex

        from detent.clients.installing.parts import Outcome, Part

        line = f"hook = {shlex.join(invocation.argv('acme'))}\n".encode()

        def merge(current):
            return Outcome(self._without(current or b"") + line)

        def strip(current, original):
            rest = self._without(current)
            return Outcome(rest if rest or original is not None else None)

        return [Part(CONF, merge, strip)]

    def findings(self, root, *, is_recorded, environment):
        from detent.clients.installing.files import read
        from detent.clients.installing.installation import AGAIN, ERROR, Finding

        if not is_recorded:
            return None
        if b"hook = " in (read(root, CONF) or b""):
            return iter(())
        return iter(
            [Finding(client="acme", severity=ERROR, subject=CONF, message="the hook line is missing", way_out=AGAIN)]
        )

    @staticmethod
    def _without(content):
        return b"".join(line for line in content.splitlines(keepends=True) if not line.startswith(b"hook = "))


INSTALLATION = AcmeInstallation()


class AcmeReader:
    """It says one line a word, and ends with the word done."""

    def __init__(self):
        self.words = []

    def line(self, line):
        from detent.core.run.agent_event import Said

        self.words.append(line.decode().strip())
        return [Said(text=self.words[-1])]

    def unfinished(self):
        return []

    def end(self, exited):
        from detent.clients.adapter.failure import crashed
        from detent.clients.adapter.stream import finished

        return [finished("Summary: acme did it") if self.words[-1:] == ["done"] else crashed("acme", exited)]


def adapter(settings):
    from detent.clients.adapter.driven import client

    return client(settings, "acme", ("--work",), unless={}, reader=AcmeReader)


CLIENT = Client(
    "acme",
    title="Acme",
    adapter=__name__,
    dialect=__name__,
    installation=__name__,
    program="acme",
    marks=("ACME_SHELL",),
    settings=(CONF,),
)
register(CLIENT)
