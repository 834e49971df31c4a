"""What can be wrong with a task or a set of them."""

#: The rules by name; the number is the one that the integrity rules of the task format have.
RULES: dict[str, int | None] = {
    "unique-id": 1,
    "id-form": 2,
    "parent-exists": 3,
    "depth": 4,
    "status": 5,
    "required-keys": 6,
    "focus-paths": 7,
    "pre-analysis": 8,
    "depends-on": 9,
    "agent": None,
    "approach": None,
    "bookkeeping": None,
    "container": None,
    "cycle": None,
    "file-name": None,
    "inherited": None,
    "lists": None,
    "parent": None,
    "target-files": None,
    "title": None,
    "type": None,
}
