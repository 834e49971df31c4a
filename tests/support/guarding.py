"""The guard's functions with the files of the clients that Detent knows."""

from functools import partial

from detent.clients.registry import guarded_files
from detent.core.guard import protected as rules

guarded = partial(rules.guarded, files=guarded_files())
guarded_hits = partial(rules.guarded_hits, files=guarded_files())
command_hits = partial(rules.command_hits, files=guarded_files())
