"""Makes a release: `make release` builds, checks and tries it; `make release TAG=1` also tags it.

1. Build wheel and sdist twice: both builds have the same bytes.
2. Check the wheel: size, contents, no tests, no path of the machine.
3. Install it in a clean environment of every Python from 3.11 on that the machine has, and try the command.
4. Write beside it: checksums, an SBOM (CycloneDX), a provenance statement (in-toto, SLSA), the notes of the version.

A release is made of a clean checkout. Nothing is uploaded.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from book import formats

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
MAX_WHEEL_BYTES = 2_000_000
#: The limit for the files that an install brings. Byte code is reported beside it: pip makes it when it installs, uv
#: leaves it to the interpreter, which makes it for the modules that are used.
MAX_INSTALLED_BYTES = 10_000_000
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
#: The packages that an install without extras brings besides Detent.
DEPENDENCIES = {"click", "msgspec"}
_PROVENANCE = "https://slsa.dev/provenance/v1"


class ReleaseFailed(Exception):
    """A check of the release did not pass."""


def main(arguments: list[str]) -> int:
    """Make the release; the exit code says whether every check passed."""
    try:
        if "--allow-dirty" not in arguments and _git("status", "--porcelain"):
            raise ReleaseFailed("the checkout has changes that are not committed")
        version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
        assert version is not None
        if "--tag" in arguments:
            check_recorded(version[1])
        wheel, sdist = build()
        check_wheel(wheel)
        tried = [try_install(wheel, python) for python in pythons()]
        write_beside([wheel, sdist], version[1])
        print(f"release {version[1]}: {wheel.name} {wheel.stat().st_size:,} bytes; tried with", *tried, sep="\n  ")
        if "--tag" in arguments:
            _git("tag", "-a", f"v{version[1]}", "-m", f"Detent {version[1]}")
            print(f"tagged v{version[1]}; push it with: git push origin v{version[1]}")
    except ReleaseFailed as failure:
        print(f"no release: {failure}", file=sys.stderr)
        return 1
    return 0


def check_recorded(version: str) -> None:
    """Refuse to tag a version without a section in the changelog, or whose formats no test keeps."""
    if version not in formats.released((ROOT / "CHANGELOG.md").read_text("utf-8")):
        raise ReleaseFailed(f"CHANGELOG.md has no section about {version}: rename the unreleased one")
    if not (formats.RELEASED / version).is_dir():
        raise ReleaseFailed(f"the formats of {version} are not recorded: python -m book.formats {version}")


def build() -> tuple[Path, Path]:
    """Wheel and sdist in dist/, after a second build had the same bytes."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as again:
        for directory in (DIST, Path(again)):
            command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(directory)]
            _run(command, cwd=ROOT, env={**os.environ, "SOURCE_DATE_EPOCH": _git("log", "-1", "--format=%ct")})
        different = [path.name for path in DIST.iterdir() if digest(path) != digest(Path(again) / path.name)]
    if different:
        raise ReleaseFailed(f"two builds of {', '.join(different)} differ")
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def check_wheel(wheel: Path) -> None:
    """Refuse a wheel that is too large, lacks something, or holds something that does not belong there."""
    if wheel.stat().st_size > MAX_WHEEL_BYTES:
        raise ReleaseFailed(f"{wheel.name} has {wheel.stat().st_size:,} bytes; the limit is {MAX_WHEEL_BYTES:,}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        strange = [name for name in names if not name.startswith(("detent/", "detent-"))]
        here = [name for name in names if str(ROOT).encode() in archive.read(name)]
    source = ROOT / "src"
    shipped = {path.relative_to(source).as_posix() for path in source.rglob("*") if _is_shipped(path)}
    problems = {"does not belong there": strange, "has a path of this machine": here}
    problems["is missing"] = sorted(shipped - set(names))
    for problem, concerned in problems.items():
        if concerned:
            raise ReleaseFailed(f"{wheel.name}: {', '.join(concerned[:5])} {problem}")


def _is_shipped(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and not path.name.endswith((".pyc", ".egg-info"))


def pythons() -> Iterator[str]:
    """Every Python from 3.11 on that runs here; this one at least."""
    known: dict[str, str] = {}
    for program in (*(shutil.which(name) for name in PYTHONS), sys.executable):
        if program is None:
            continue
        asked = subprocess.run(
            [program, "-c", "import sys; print(sys.version)"], capture_output=True, text=True, check=False
        )
        if asked.returncode == 0:
            known.setdefault(".".join(asked.stdout.split(".")[:2]), program)
    yield from known.values()


def try_install(wheel: Path, python: str) -> str:
    """Install the wheel in a clean environment, and work through a session of one phase. Returns what was seen."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        _run([python, "-m", "venv", str(home / "venv")])
        own = home / "venv" / "bin" / "python"
        before = {path.name for path in _packages(own)}
        _run([str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)])
        sizes = installed_sizes([path for path in _packages(own) if path.name not in before])
        if sizes.keys() != {"detent", *DEPENDENCIES}:
            raise ReleaseFailed(
                f"an install brings {', '.join(sorted(sizes))}, not Detent and {', '.join(DEPENDENCIES)}"
            )
        files = sum(size.files for size in sizes.values())
        if files > MAX_INSTALLED_BYTES:
            raise ReleaseFailed(f"the files of an install have {files:,} bytes; the limit is {MAX_INSTALLED_BYTES:,}")
        project = home / "project"
        project.mkdir()
        (project / "detent.toml").write_text('[workflows.small]\nphases = ["only"]\n')
        environment = {"HOME": directory, "PATH": f"{own.parent}:{os.defpath}", "XDG_STATE_HOME": f"{directory}/state"}
        for words in ("--version", "init", "start small Try", "finish -m done", "history", "doctor"):
            _run([str(own.parent / "detent"), *words.split()], cwd=project, env=environment)
        version = _run([str(own), "-c", "import platform; print(platform.python_version())"]).strip()
        return f"Python {version}: {describe_sizes(sizes)}"


class InstalledSize(NamedTuple):
    """Bytes of a package, as they are shipped, and of the byte code that the installer made of them."""

    files: int
    byte_code: int


def installed_sizes(paths: Iterable[Path]) -> dict[str, InstalledSize]:
    """The size of each package whose directories these are; one and its `.dist-info` count together."""
    sizes: dict[str, InstalledSize] = {}
    for path in paths:
        name = re.split(r"[-.]", path.name)[0]
        files, byte_code = sizes.get(name, (0, 0))
        for file in _files(path):
            size = file.stat().st_size
            files, byte_code = (files, byte_code + size) if file.suffix == ".pyc" else (files + size, byte_code)
        sizes[name] = InstalledSize(files, byte_code)
    return sizes


def describe_sizes(sizes: dict[str, InstalledSize]) -> str:
    """Both sums, which of them the limit is for, and whether the other one is below it too."""
    files, byte_code = (sum(column) for column in zip(*sizes.values(), strict=True))
    total, limit = files + byte_code, MAX_INSTALLED_BYTES
    side = "above" if total > limit else "below"
    lines = [
        f"{files / 1e6:.1f} MB of files; the limit is {limit / 1e6:.0f} MB",
        f"with byte code {total / 1e6:.1f} MB, {abs(total - limit) / 1e6:.1f} MB {side} the limit",
        *(f"{name} {size.files:,} bytes, byte code {size.byte_code:,}" for name, size in sorted(sizes.items())),
    ]
    return "\n    ".join(lines)


def _packages(python: Path) -> list[Path]:
    (site,) = (python.parents[1] / "lib").glob("python*/site-packages")
    return list(site.iterdir())


def _files(path: Path) -> Iterable[Path]:
    return [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]


def write_beside(artifacts: list[Path], version: str) -> None:
    """Checksums, SBOM, provenance and notes, beside the artifacts."""
    sums = {path.name: digest(path) for path in artifacts}
    (DIST / "SHA256SUMS").write_text("".join(f"{value}  {name}\n" for name, value in sorted(sums.items())))
    (DIST / "sbom.cdx.json").write_text(_json(sbom(version)))
    (DIST / "provenance.intoto.json").write_text(_json(provenance(sums)))
    (DIST / "NOTES.md").write_text(notes(version))


def sbom(version: str) -> dict[str, object]:
    """The components of an install without extras, in CycloneDX 1.6."""
    components = [
        {
            "type": "library",
            "name": name,
            "version": metadata.version(name),
            "purl": f"pkg:pypi/{name}@{metadata.version(name)}",
        }
        for name in sorted(DEPENDENCIES)
    ]
    about = {"type": "application", "name": "detent", "version": version, "purl": f"pkg:pypi/detent@{version}"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": about},
        "components": components,
    }


def provenance(sums: dict[str, str]) -> dict[str, object]:
    """What was built from which commit, as an in-toto statement."""
    commit = _git("rev-parse", "HEAD")
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": value}} for name, value in sorted(sums.items())],
        "predicateType": _PROVENANCE,
        "predicate": {
            "buildDefinition": {
                "buildType": "https://hatch.pypa.io/latest/build/",
                "externalParameters": {"targets": ["wheel", "sdist"]},
                "resolvedDependencies": [{"uri": "git+detent", "digest": {"gitCommit": commit}}],
            },
            "runDetails": {"builder": {"id": "make release"}},
        },
    }


def notes(version: str) -> str:
    """The section of the changelog about the version; before it is released, the one about what is unreleased."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    for name in (version, "Unreleased"):
        section = re.search(rf"^## \[?{re.escape(name)}\]?.*?$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        if section:
            return f"# Detent {version}\n\n{section[1].strip()}\n"
    raise ReleaseFailed(f"CHANGELOG.md has no section about {version}")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def _git(*words: str) -> str:
    return _run(["git", *words], cwd=ROOT).strip()


def _run(command: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ReleaseFailed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
