"""One pool of connections a process and database, and what is done when the database does not answer.

A connection is made in the thread that needs it, so the reason of a failure reaches the caller, and a database that
comes back is used within a second. Connections are in autocommit mode and hold no state of the session between two
uses, so a pooler that works by transaction may stand in between.
"""

import atexit
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from detent.errors import Invalid, StoreFailed
from detent.extras import install_command
from detent.store.address import described

if TYPE_CHECKING:
    import psycopg

#: Connections of a process to one database.
MAX_CONNECTIONS = 8
#: A command that has not reached the database yet gives up after this long: a restart takes less.
FIRST_WAIT_S = 5.0
#: A process that has reached it waits this long for it to come back.
WAIT_S = 60.0
#: From here on a person is told that the command waits.
TELL_S = 2.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5
#: Uses of a statement before it is prepared, and the errors that say that the server does not know it.
_PREPARED_AFTER = 2
_NOT_PREPARED = ("26000", "42P05")
_LOGIN = "put the password into ~/.pgpass, the file in PGPASSFILE, or PGPASSWORD; or correct the role in the URL"
_TLS = "correct sslmode, sslrootcert, sslcert and sslkey of the URL, or the certificate of the server"
#: Parts of messages of libpq and psycopg that say that waiting cannot help, each with the way out.
_REFUSALS = {
    "pg_hba.conf": "let pg_hba.conf of the server admit the role; if it wants TLS, add ?sslmode=verify-full to the URL",
    "certificate": _TLS,
    "SSL": _TLS,
    "authentication failed": _LOGIN,
    "no password supplied": _LOGIN,
    "does not exist": "make the role or the database, or correct the URL",
    "definition of service": "correct ~/.pg_service.conf, or the service in the URL",
    "could not translate host name": "correct the host in the URL",
    "failed to resolve host": "correct the host in the URL",
}
#: What libpq is asked for, unless the URL says otherwise: a peer that is gone is noticed.
_DEFAULTS = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
    "application_name": "detent",
}

Result = TypeVar("Result")
_pools: dict[tuple[int, str], "Pool"] = {}
_opening = threading.Lock()


def driver() -> Any:
    """The module `psycopg`."""
    try:
        import psycopg  # noqa: PLC0415 - only a project with a database needs it
    except ImportError as error:
        raise Invalid(
            "this project keeps its journals in Postgres, and the driver is not installed",
            way_out=install_command("postgres"),
        ) from error
    return psycopg


def pool_of(url: str) -> "Pool":
    """The pool of this process. A forked child has its own: it must not talk over its parent's connections."""
    with _opening:
        key = (os.getpid(), url)
        if key not in _pools:
            pool = _pools[key] = Pool(url)
            atexit.register(pool.close)
        return _pools[key]


class Pool:
    def __init__(self, url: str) -> None:
        self.url = url
        self.name = described(url)
        #: Gets a line for a person while a call waits for the database.
        self.tell: Callable[[str], object] | None = None
        self._driver = driver()
        #: A cursor of each connection that is not in use: making one costs a third of a short statement.
        self._idle: list[psycopg.Cursor[Any]] = []
        self._guard = threading.Lock()
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._has_connected = False
        #: Whether statements may be prepared; None until a connection was made.
        self._prepares: bool | None = None
        self._process = os.getpid()

    def run(self, action: "Callable[[psycopg.Cursor[Any]], Result]", *, wait_s: float | None = None) -> Result:
        """Call the action with the cursor of a connection; again with another one if the connection breaks.

        So every action can be done twice: the second time it finds what the first one did. `StoreFailed` if the
        database does not answer in time; it is then unknown whether the action was done.
        """
        started_s, pause_s, has_warned = time.monotonic(), _FIRST_PAUSE_S, False
        while True:
            try:
                with self._cursor() as cursor:
                    return action(cursor)
            except self._driver.OperationalError as error:
                # A server that starts or stops says so in an answer; anything else with an answer is final.
                if error.sqlstate is not None and error.sqlstate[:2] not in ("57", "08", "53"):
                    raise self._failure(error) from error
                limit_s = wait_s if wait_s is not None else WAIT_S if self._has_connected else FIRST_WAIT_S
                waited_s = time.monotonic() - started_s
                # The URL of a database that was reached is right, and a broken connection with TLS names SSL too.
                if not self._has_connected and error.sqlstate is None and _refusal(error) is not None:
                    raise self._failure(error) from error
                if waited_s >= limit_s:
                    raise self._failure(error, waited_s) from error
                if waited_s >= TELL_S and not has_warned and self.tell is not None:
                    has_warned = True
                    self.tell(f"waiting up to {limit_s:.0f} s for {self.name}: {_reason(error)}")
                time.sleep(pause_s)
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            except self._driver.Error as error:
                if error.sqlstate in _NOT_PREPARED and self._prepares:
                    # A pooler that was not noticed: from now on each statement is sent whole.
                    self._prepares = False
                    self.close()
                    continue
                raise self._failure(error) from error

    def connect(self) -> "psycopg.Connection[Any]":
        """A connection beside the pool, which the caller closes."""
        given = self._driver.conninfo.conninfo_to_dict(self.url)
        options = {name: value for name, value in _DEFAULTS.items() if name not in given}
        connection: psycopg.Connection[Any] = self._driver.connect(
            self.url, autocommit=True, prepare_threshold=None, **options
        )
        if self._prepares is None:
            # A pooler gives statements to any server, where another client may have prepared one of the same name.
            ((process,),) = connection.execute("SELECT pg_backend_pid()").fetchall()
            self._prepares = process == connection.info.backend_pid
        connection.prepare_threshold = _PREPARED_AFTER if self._prepares else None
        self._has_connected = True
        return connection

    def close(self) -> None:
        if self._process != os.getpid():
            # The connections of a parent are not ours to end.
            return
        with self._guard:
            idle, self._idle = self._idle, []
        for cursor in idle:
            with suppress(self._driver.Error):
                cursor.connection.close()

    @contextmanager
    def _cursor(self) -> "Iterator[psycopg.Cursor[Any]]":
        with self._places:
            with self._guard:
                cursor = self._idle.pop() if self._idle else None
            if cursor is None:
                cursor = self.connect().cursor()
            try:
                yield cursor
            except BaseException:
                # Whatever happened, an interrupted statement must not be met by the next one.
                with suppress(self._driver.Error):
                    cursor.connection.close()
                raise
            with self._guard:
                self._idle.append(cursor)

    def _failure(self, error: "psycopg.Error", waited_s: float = 0.0) -> StoreFailed:
        state = error.sqlstate or ""
        if state == "42501":
            way_out = (
                "give the role its privileges: detent store roles prints the statements; the tables are made by the "
                "role that owns them, which needs GRANT CREATE ON DATABASE"
            )
        elif state in ("3F000", "42P01"):
            way_out = "make the tables: detent store migrate URL, with the role that owns them"
        elif not state and (refusal := _refusal(error)) is not None:
            way_out = refusal
        elif waited_s or not state:
            stands = "; detent status shows whether a commit stands" if self._has_connected else ""
            way_out = f"start the database or fix the network and retry{stands}"
        else:
            way_out = "nothing was committed; fix the problem and retry"
        waited = f" (gave up after {waited_s:.0f} s)" if waited_s else ""
        return StoreFailed(f"{self.name} failed: {_reason(error)}{waited}", way_out=way_out)


def _reason(error: "psycopg.Error") -> str:
    """The message without what the URL says already, and without advice of libpq."""
    text = " ".join(str(error).split())
    text = re.sub(r"^(connection failed: )?connection to server at .*?, port \d+ failed: (FATAL: )?", "", text)
    return text.partition(" Is the server running")[0][:300] or type(error).__name__


def _refusal(error: "psycopg.Error") -> str | None:
    """The way out if waiting cannot help: a wrong name, role, password or certificate."""
    return next((way_out for sign, way_out in _REFUSALS.items() if sign in str(error)), None)
