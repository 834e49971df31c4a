"""Runs a command and says what memory it took at most, in bytes. Small: a child counts what it was started from."""

import os
import subprocess
import sys


def main(command: list[str]) -> None:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command} ended with exit code {os.waitstatus_to_exitcode(status)}")
    print(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))


if __name__ == "__main__":
    main(sys.argv[1:])
