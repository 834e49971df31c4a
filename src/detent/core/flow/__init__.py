"""Flow control: the steps of a task before its work begins, as commands that can be run safely, and what came of them.

Everything here is a value or a function of values. Running a command, and keeping what was recorded, is done elsewhere.
"""
