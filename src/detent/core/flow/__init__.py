"""Flow control: the steps that run before the work on a task begins, as commands that cannot be injected into."""
