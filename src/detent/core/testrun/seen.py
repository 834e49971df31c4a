"""Names of the notes about test runs that hooks have seen. Hooks import it, so it uses builtins only.

A hook notes a run and answers its client. A process of its own then records the run in the journal; if that is ended,
the next change of the session does it. What came of the run waits for the next event of the same conversation.
"""

#: Notes of runs that are not recorded yet, in the directory of a session: one file a run, in the order of their names.
SEEN = ".process/seen/"
#: The most characters of an output that are kept, its last ones.
MAX_OUTPUT = 1_000_000
