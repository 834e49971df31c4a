"""What the figures were measured on."""

import os
import platform


def facts(directory: str) -> dict[str, str]:
    return {
        "cores": str(os.cpu_count()),
        "processor": _processor(),
        "python": platform.python_version(),
        "file system": _file_system(directory),
        "load": f"{os.getloadavg()[0]:.1f}",
        "kernel": f"{platform.system()} {platform.release()}",
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _file_system(directory: str) -> str:
    """The type of the mount that `directory` is on; only Linux tells it in a file."""
    real = os.path.realpath(directory)
    try:
        with open("/proc/mounts", encoding="utf-8") as file:
            mounts = [line.split()[1:3] for line in file]
    except OSError:
        return "unknown"
    around = [(len(point), kind) for point, kind in mounts if os.path.commonpath((real, point)) == point]
    return max(around)[1] if around else "unknown"
