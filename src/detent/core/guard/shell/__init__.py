"""The one reader of bash: a tree with source positions, the files that a command writes, and the prefix programs."""
