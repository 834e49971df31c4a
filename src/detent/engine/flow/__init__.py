"""Flow control: run the steps of a task."""
