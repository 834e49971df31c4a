"""The environment of a check: what it inherits, what its gate declares, and the toolchain of the session's start.

An agent can set any variable in its shell before it runs a check. So a check inherits a short list, and everything that
leads to programs is taken from the start of the session.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from detent.core.gate.evidence import Toolchain

#: Taken from the process that runs the check: none of them leads to a program.
INHERITED = frozenset(
    (
        *("USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "COLORTERM", "COLUMNS", "NO_COLOR", "CI"),
        *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
        *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT"),
        *("NIX_SSL_CERT_FILE", "XDG_RUNTIME_DIR", "SOURCE_DATE_EPOCH"),
    )
)
_INHERITED_STARTS = ("LC_",)
#: Taken from the start of the session: directories in which programs and their settings are found.
HOMES = frozenset(
    (
        *("HOME", "SHELL", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"),
        *("JAVA_HOME", "MAVEN_HOME", "M2_HOME", "GRADLE_HOME", "GRADLE_USER_HOME", "SDKMAN_DIR", "KOTLIN_HOME"),
        *("ANDROID_HOME", "ANDROID_SDK_ROOT", "DOTNET_ROOT", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"),
        *("GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "NVM_DIR", "VOLTA_HOME", "FNM_DIR", "FNM_MULTISHELL_PATH"),
        *("PNPM_HOME", "BUN_INSTALL", "DENO_DIR", "PYENV_ROOT", "PYENV_VERSION", "RBENV_ROOT", "RBENV_VERSION"),
        *("NODENV_ROOT", "NODENV_VERSION", "GEM_HOME", "GEM_PATH", "COMPOSER_HOME", "CONDA_PREFIX", "HOMEBREW_PREFIX"),
        *("PIP_CACHE_DIR", "UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR", "POETRY_HOME", "LOCALE_ARCHIVE", "NIX_PROFILES"),
    )
)
_HOME_STARTS = ("ASDF_", "MISE_")
#: They change what a program does, so a gate gives them a value or goes without.
_STEERING = frozenset(
    (
        *("BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "IFS", "VIRTUAL_ENV", "NODE_OPTIONS", "NODE_PATH"),
        *("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_OPTS", "MAVEN_ARGS", "GRADLE_OPTS"),
        *("GOFLAGS", "GOTOOLCHAIN", "RUSTC", "RUSTC_WRAPPER", "RUSTFLAGS", "MAKEFLAGS", "MAKEFILES", "MFLAGS"),
        *("PERL5OPT", "PERL5LIB", "RUBYOPT", "RUBYLIB"),
    )
)
_STEERING_STARTS = (
    *("PYTHON", "PYTEST_", "LD_", "DYLD_", "GIT_", "CARGO_", "NPM_CONFIG_", "npm_", "COVERAGE_", "TOX_", "BASH_FUNC_"),
)
#: Detent sets these itself.
_OWN = ("PATH",)
_OWN_STARTS = ("DETENT_",)
#: Directories of programs in a project that stay on PATH if a person had them there.
_TOOL_DIRECTORIES = re.compile(
    r"(?:.*/)?(?:\.venv/bin|venv/bin|node_modules/\.bin|\.direnv/(?:[^/]+/)?bin|\.tox/[^/]+/bin)"
)
#: Every account writes there.
_SHARED = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - names of directories that are not trusted
#: They say nothing about programs, and every shell has them.
_NOISE = frozenset(("PATH", "PWD", "OLDPWD", "SHLVL", "_", "PS1", "PS2", "PROMPT_COMMAND", "LS_COLORS", "LESSOPEN"))
_NOISE_STARTS = ("BASH_FUNC_", "TERM_", "SSH_", "DETENT_", "VSCODE_", "XDG_")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class CheckEnvironment(NamedTuple):
    """All variables of a check. `left_out` are the variables and entries of PATH that its caller had besides."""

    variables: dict[str, str]
    left_out: tuple[str, ...]


def declared_problems(declared: Iterable[str]) -> list[str]:
    """The reasons why entries of `env` cannot be used: `NAME=value` sets a variable, `NAME` passes it on."""
    problems = []
    for entry in declared:
        name, is_set, _ = entry.partition("=")
        if not _NAME.fullmatch(name):
            problems.append(f"{entry!r} is neither NAME nor NAME=value")
        elif name in _OWN or name.startswith(_OWN_STARTS):
            problems.append(f"{name} is set by Detent")
        elif not is_set and (name in _STEERING or name.startswith(_STEERING_STARTS)):
            problems.append(f"{name} changes what programs do: give its value, {name}=…")
    return problems


def tool_path(
    entries: Iterable[str], roots: Collection[str], real: Callable[[str], str | None], *, is_trusted: bool
) -> tuple[str, ...]:
    """The entries of PATH that checks use.

    `real` is the real path of a directory; None if there is none. Of the directories in the project (`roots`), only
    those of installed packages stay, and only if a person set PATH (`is_trusted`). Otherwise nothing stays that lies in
    the project or where every account writes.
    """
    kept: dict[str, None] = {}
    for entry in entries:
        at = real(entry) if entry.startswith("/") else None
        if at is None:
            continue
        is_inside = any(is_below(at, root) or is_below(entry, root) for root in roots)
        if is_trusted:
            is_kept = not is_inside or _TOOL_DIRECTORIES.fullmatch(entry) is not None
        else:
            is_kept = not is_inside and not any(is_below(at, shared) for shared in _SHARED)
        if is_kept:
            kept[entry] = None
    return tuple(kept)


def tool_homes(environment: Mapping[str, str], roots: Collection[str], *, is_trusted: bool) -> dict[str, str]:
    """The variables that lead to programs. Without trust, none that leads into the project or a shared directory."""
    homes = {}
    for name in sorted(environment):
        value = environment[name]
        if not (name in HOMES or name.startswith(_HOME_STARTS)) or not value:
            continue
        if is_trusted or not any(is_below(value, place) for place in (*roots, *_SHARED)):
            homes[name] = value
    return homes


def check_environment(
    inherited: Mapping[str, str], declared: Iterable[str], tools: Toolchain, *, marks: Collection[str] = ()
) -> CheckEnvironment:
    """The environment of a check. `marks` are inherited too: they tell that an agent started the process."""
    variables = {
        name: value
        for name, value in inherited.items()
        if name in INHERITED or name in marks or name.startswith((*_INHERITED_STARTS, *_OWN_STARTS))
    }
    variables |= tools.homes
    for entry in declared:
        name, is_set, value = entry.partition("=")
        if is_set:
            variables[name] = value
        elif name in inherited:
            variables[name] = inherited[name]
    variables["PATH"] = ":".join(tools.path)
    names = (name for name in sorted(inherited) if name not in variables and name not in _NOISE)
    entries = (entry for entry in inherited.get("PATH", "").split(":") if entry and entry not in tools.path)
    left_out = (*(name for name in names if not name.startswith(_NOISE_STARTS)), *dict.fromkeys(entries))
    return CheckEnvironment(variables, left_out)


def is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
