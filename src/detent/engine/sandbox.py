"""The sandbox of a run: what agents, checks and steps may write, read and reach.

Writable are the checkout that they work in, the git directory behind it, a directory for temporary files of the run,
caches, and for agents the directories of the clients. Of these, the files that decide are read-only: the state, the
settings, the hooks of clients and of git, and Detent itself. Keys and sockets of other programs are hidden.

A mount needs a file to lie on. A file of settings that does not exist cannot be kept from being made: it is moved
aside as soon as it is seen (`set_aside`), and nothing is read from it.
"""

import glob
import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from detent.clients.registry import CLIENTS, Client, directories, settings_files
from detent.config import place as places
from detent.config.settings import SandboxSettings
from detent.core.gate.environment import is_below
from detent.engine.stores import user_state
from detent.errors import Refused
from detent.process.sandbox import Access, Mount, Sandbox, problem
from detent.store.state_home import INDEX, PROJECT_ID, read_text

if TYPE_CHECKING:
    from detent.config.place import Place
    from detent.engine.project import Project

#: The directory with the socket of the runner, in the sandbox.
SOCKET_DIRECTORY = "/run/detent"
#: Files at the top of a checkout that say what is allowed and who decides.
_SETTINGS = (places.CONFIG, "approvers.toml")
#: Files of a git directory that make git run programs, or lead it to another directory.
_OF_GIT = ("config", "config.worktree", "hooks", "commondir")
_CACHES = (
    "~/.cache", "~/.npm", "~/.pnpm-store", "~/.local/share/pnpm/store", "~/.yarn/berry", "~/.bun/install/cache",
    "~/.cargo/registry", "~/.cargo/git", "~/go/pkg", "~/.gradle/caches", "~/.gradle/wrapper", "~/.m2/repository",
    "~/.nuget/packages", "~/.ivy2/cache", "~/.composer/cache",
)  # fmt: skip
_CACHE_VARIABLES = (
    "XDG_CACHE_HOME", "PIP_CACHE_DIR", "UV_CACHE_DIR", "POETRY_CACHE_DIR", "npm_config_cache", "YARN_CACHE_FOLDER",
    "GOCACHE", "GOMODCACHE", "SCCACHE_DIR", "CCACHE_DIR",
)  # fmt: skip
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - they are replaced
#: Keys, and sockets of programs that would act for a process outside of the sandbox.
_HIDDEN = (
    "/run", "/var/run", "~/.ssh", "~/.gnupg", "~/.password-store", "~/.local/share/keyrings", "~/.local/share/kwalletd",
    "~/.screen", "~/.Xauthority", "~/.docker/run", "~/.colima", "~/.lima", "~/.rd",
)  # fmt: skip
#: Variables with the path of such a file or socket.
_HIDDEN_VARIABLES = (
    "SSH_AUTH_SOCK", "GNUPGHOME", "GPG_AGENT_INFO", "XAUTHORITY", "TMUX", "TMUX_TMPDIR", "DOCKER_HOST",
    "CONTAINER_HOST", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "XDG_RUNTIME_DIR", "KITTY_LISTEN_ON",
    "VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE", "SCREENDIR", "WAYLAND_DISPLAY",
)  # fmt: skip
#: Variables that only name what is hidden.
_NAMING_VARIABLES = ("SSH_AGENT_PID", "DISPLAY", "TMUX_PANE", "STY")
#: Parts of /run that programs read: names of hosts and accounts, and the programs of NixOS.
_OF_RUN = (
    *("/run/systemd/resolve", "/run/systemd/userdb", "/run/nscd", "/run/NetworkManager"),
    *("/run/current-system", "/run/booted-system", "/run/opengl-driver", "/run/wrappers"),
)
_RESOLVER = "/etc/resolv.conf"
#: Sockets outside of /run that only tell names of accounts.
_OF_NAMES = "/var/lib/sss/pipes"
#: Sockets of this machine that have a path, and how many of them are hidden at most.
_SOCKETS, _MAX_SOCKETS = "/proc/net/unix", 256
_ASIDE = ".aside"


class RunSandbox:
    """Makes the sandboxes of one run. `directory` is private to the run and has its temporary files."""

    def __init__(self, place: "Place", settings: SandboxSettings, directory: str) -> None:
        self.place, self.settings, self.directory = place, settings, directory
        self._allowed = tuple(_expanded(path, place.root) for path in settings.allow)
        #: Settings that are not there, and links to settings with what they lead to.
        self._watched: dict[str, str] = {}
        self._watching = threading.Lock()
        self.notices: list[str] = []

    @classmethod
    def of_text(cls, place: "Place", text: str) -> "RunSandbox":
        """The sandbox that the runner passes on. Its settings are not read again: an agent may have made the file."""
        passed = msgspec.json.decode(text, type=_Passed)
        return cls(place, passed.settings, passed.directory)

    @property
    def text(self) -> str:
        return msgspec.json.encode(_Passed(settings=self.settings, directory=self.directory)).decode()

    def for_agent(
        self, place: "Place", adapter: str, env: Mapping[str, str], *, scratch: str = "", socket: str = ""
    ) -> Sandbox:
        """The sandbox of a turn. `scratch` is the directory of the turn, `socket` that of the runner's socket."""
        client = CLIENTS[adapter]
        home, guarded = _client_home(client, env), list[str]()
        mounts = [_writable(scratch)] if os.path.isdir(scratch) else []
        if home:
            os.makedirs(home, exist_ok=True)
            mounts.append(_writable(home))
            guarded = [_placed(os.path.join(home, name)) for name in client.home_settings]
        for number, file in enumerate(client.home_files):
            mounts += self._copied(os.path.join(home, _home_path(file, env)), f"{client.name}-{number}")
        if socket:
            mounts.append(Mount(path=SOCKET_DIRECTORY, access=Access.READ, source=socket))
        return self._made(place, mounts, guarded)

    def for_check(self, place: "Place", *writable: str, merges: bool = False) -> Sandbox:
        """The sandbox of a check or a step. `merges`: it merges the worktree, and must write where that goes."""
        paths = [*writable, _bytecode()]
        if merges:
            paths += [self.place.root, places.worktrees(self.place.root)]
        return self._made(place, [_writable(os.path.realpath(path)) for path in paths])

    def set_aside(self) -> None:
        """Move away the settings that were made in a sandbox, with a notice for each."""
        with self._watching:
            for path in [path for path, target in self._watched.items() if _link_at(path) != target]:
                aside = next(name for n in range(1, 1_000_000) if not os.path.lexists(name := f"{path}{_ASIDE}-{n}"))
                with suppress(FileNotFoundError):
                    os.rename(path, aside)
                    self.notices.append(f"{path} was made during the run, and is not used; it is {aside} now")
                if self._watched[path]:
                    os.symlink(self._watched[path], path)

    # The parts of a sandbox

    def _made(self, place: "Place", further: Iterable[Mount], guarded: Iterable[str] = ()) -> Sandbox:
        top = _checkout(place)
        mounts = {mount.path: mount for mount in self._temporary()}
        mounts |= {path: Mount(path=path, access=Access.READ) for path in _programs(tuple(mounts))}
        root = os.path.realpath(self.place.root)
        # A worktree is worked in without writing the project, which may be in a directory for temporary files.
        mounts |= {path: Mount(path=path, access=Access.READ) for path in (root, places.repository(root) or root)}
        mounts |= {path: _writable(path) for path in (top, *_git_directories(top), *_caches())}
        covered = (*mounts, "/dev", "/proc")
        for path in _hidden(self.settings.hide, self.place.root, covered):
            mounts[path] = Mount(path=path, access=Access.HIDE)
        mounts |= {path: Mount(path=path, access=Access.READ) for path in _needed_of_run()}
        mounts |= {mount.path: mount for mount in further}
        for path in (*_settings_of(top), *_settings_of(self.place.root), *guarded):
            self._guard(path, mounts)
        for path in _own_files(self.place):
            mounts.setdefault(path, Mount(path=path, access=Access.READ))
        mounts |= {mount.path: mount for mount in _user_state(self.place)}
        for path in self._allowed:
            hidden = [at for at, mount in mounts.items() if mount.access is Access.HIDE and is_below(at, path)]
            mounts = {at: mount for at, mount in mounts.items() if at not in hidden} | {path: _writable(path)}
        mounts = {at: mount for at, mount in mounts.items() if mount.source or os.path.lexists(at)}
        for path in list(_between(mounts)):
            mounts.setdefault(path, _writable(path))
        network = self.settings.network == "on"
        return Sandbox(mounts=tuple(mounts.values()), network=network, without=self._without(os.environ))

    def _guard(self, path: str, mounts: dict[str, Mount]) -> None:
        """Make the path read-only; watch it if there is nothing, or a link, which can be replaced."""
        if path in self._allowed:
            return
        around = max((at for at in mounts if is_below(path, at)), key=len, default="/")
        is_writable = around in mounts and mounts[around].access is Access.WRITE
        if is_writable and (not os.path.lexists(path) or os.path.islink(path)):
            with self._watching:
                self._watched.setdefault(path, _link_at(path) or "")
        if os.path.lexists(path):
            real = os.path.realpath(path)
            mounts[real] = Mount(path=real, access=Access.READ)

    def _temporary(self) -> Iterator[Mount]:
        for path in dict.fromkeys(map(os.path.realpath, (*_TEMPORARY, tempfile.gettempdir()))):
            source = os.path.join(self.directory, "tmp", path.strip("/").replace("/", "-"))
            os.makedirs(source, exist_ok=True)
            if os.path.isdir(path):
                yield Mount(path=path, access=Access.WRITE, source=source)

    def _copied(self, path: str, name: str) -> list[Mount]:
        """A copy of a file that the client writes beside its directory. What it changes there ends with the run."""
        copy = os.path.join(self.directory, name)
        if not os.path.isfile(copy):
            try:
                shutil.copy(path, copy)
            except OSError:
                return []
        return [Mount(path=os.path.realpath(path), access=Access.WRITE, source=copy)]

    def _without(self, env: Mapping[str, str]) -> frozenset[str]:
        given_back = {
            name
            for name in _HIDDEN_VARIABLES
            for path in _paths_in(env, name)
            if any(is_below(os.path.realpath(path), allowed) for allowed in self._allowed)
        }
        return frozenset((*_HIDDEN_VARIABLES, *_NAMING_VARIABLES)) - given_back


class _Passed(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about the sandbox that the commands a runner carries out need."""

    settings: SandboxSettings
    directory: str


def _writable(path: str) -> Mount:
    return Mount(path=path, access=Access.WRITE)


def _between(mounts: Mapping[str, Mount]) -> Iterator[str]:
    """The directories between a writable one and a protected path in it: a mount cannot be renamed, others could."""
    writable = {at for at, mount in mounts.items() if mount.access is Access.WRITE and not mount.source}
    for at in [at for at, mount in mounts.items() if mount.access is not Access.WRITE]:
        above = os.path.dirname(at)
        between = []
        while above not in writable and above != "/":
            between.append(above)
            above = os.path.dirname(above)
        if above != "/":
            yield from (path for path in between if not any(is_below(path, other) for other in _closed(mounts)))


def _closed(mounts: Mapping[str, Mount]) -> list[str]:
    return [at for at, mount in mounts.items() if mount.access is not Access.WRITE]


def _link_at(path: str) -> str | None:
    """The path that a link leads to; empty if there is nothing; None for anything else."""
    if not os.path.lexists(path):
        return ""
    return os.readlink(path) if os.path.islink(path) else None


def _placed(path: str) -> str:
    """The path, with something harmless at it: what does not exist cannot be made read-only."""
    if not os.path.lexists(path):
        kind = os.path.splitext(path)[1]
        if not kind:
            os.makedirs(path, exist_ok=True)
        else:
            with suppress(FileExistsError), open(path, "x", encoding="utf-8") as file:
                file.write("{}\n" if kind == ".json" else "")
    return path


def _settings_of(top: str) -> Iterator[str]:
    """The files of a checkout that say what is allowed, and those that make a client or git run programs."""
    yield from (os.path.join(top, name) for name in (*_SETTINGS, *(f for f in settings_files() if "/" not in f)))
    for name in directories():
        directory = os.path.join(top, name)
        if os.path.isdir(directory):
            yield directory
        else:
            yield from (os.path.join(top, file) for file in settings_files() if file.startswith(f"{name}/"))
    if os.path.isfile(os.path.join(top, ".git")):
        # It names the git directory of a worktree.
        yield os.path.join(top, ".git")
    for directory in _git_directories(top):
        modules = glob.glob(os.path.join(glob.escape(directory), "modules", "**", "config"), recursive=True)
        for each in (directory, *map(os.path.dirname, modules)):
            yield from (os.path.join(each, name) for name in _OF_GIT)


@contextmanager
def sandboxes(project: "Project", settings: SandboxSettings) -> Iterator[RunSandbox]:
    """The sandboxes of a run. At its end their temporary files are removed."""
    with tempfile.TemporaryDirectory(prefix="detent-sandbox-", ignore_cleanup_errors=True) as directory:
        sandbox = RunSandbox(project.place, settings, os.path.realpath(directory))
        try:
            yield sandbox
        finally:
            sandbox.set_aside()
            project.notices.extend(sandbox.notices)


def why_off(settings: SandboxSettings) -> str | None:
    """Why a run with these settings has no sandbox; None if it has one."""
    return "detent.toml says so" if settings.mode == "off" else problem()


def check_available(settings: SandboxSettings) -> None:
    """Refuse a run that must have a sandbox and cannot."""
    missing = problem() if settings.mode == "required" else None
    if missing is not None:
        raise Refused(f"the run must be in a sandbox, and there is none: {missing}", way_out=INSTALL)


#: What to do where there is no sandbox.
INSTALL = 'install bubblewrap (the package of that name), or set sandbox = "off" under [run] in detent.toml'


def _checkout(place: "Place") -> str:
    """The top of the checkout that is worked in: the worktree, or the project."""
    if not places.is_worktree(place):
        return os.path.realpath(place.root)
    trees = places.worktrees(place.root)
    return os.path.realpath(os.path.join(trees, os.path.relpath(place.base, trees).partition("/")[0]))


def _git_directories(top: str) -> list[str]:
    """The git directory of the checkout, and the one that it shares with others."""
    repository = places.repository(top)
    if repository is None:
        return []
    own = os.path.join(repository, ".git")
    if os.path.isfile(own):
        own = os.path.join(repository, _line_of(own).removeprefix("gitdir: "))
    common = os.path.join(own, _line_of(os.path.join(own, "commondir")) or ".")
    return [path for path in dict.fromkeys(map(os.path.realpath, (own, common))) if os.path.isdir(path)]


def _line_of(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read(4096).strip()
    except OSError:
        return ""


def _caches() -> Iterator[str]:
    named = (os.environ.get(name, "") for name in _CACHE_VARIABLES)
    for path in (*map(os.path.expanduser, _CACHES), *named):
        if path.startswith("/") and os.path.isdir(path):
            yield os.path.realpath(path)


def _programs(temporary: tuple[str, ...]) -> Iterator[str]:
    """The installations on PATH that are in directories for temporary files, and would be gone with them."""
    for entry in filter(os.path.isdir, os.environ.get("PATH", "").split(os.pathsep)):
        path = os.path.realpath(entry)
        above = os.path.dirname(path)
        if any(is_below(path, each) for each in temporary) and path not in temporary:
            yield above if os.path.basename(path) == "bin" and above not in temporary else path


def _bytecode() -> str:
    """The directory in which checks keep compiled Python; see `fresh_bytecode`."""
    path = os.path.join(_cache_home(), "detent", "bytecode")
    with suppress(OSError):
        # Only what is there can be made read-only. Without it checks compile everything each time.
        os.makedirs(path, exist_ok=True)
    return path


def _cache_home() -> str:
    return os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")


def _own_files(place: "Place") -> Iterator[str]:
    """The state of the project, and the files of Detent itself."""
    import detent  # noqa: PLC0415 - its place on the disk

    own = (
        os.path.join(place.root, places.STATE),
        os.path.dirname(_bytecode()),
        sys.prefix,
        os.path.dirname(os.path.realpath(str(detent.__file__))),
    )
    yield from (os.path.realpath(path) for path in own if path)


def _user_state(place: "Place") -> list[Mount]:
    """Of the user's state the part of this project: there are copies of other journals, and tokens of the page."""
    home = os.path.realpath(user_state()) if user_state() else ""
    if not os.path.isdir(home):
        return []
    own = read_text(os.path.join(place.root, places.STATE, PROJECT_ID)).strip()
    seen = [os.path.join(home, name) for name in (INDEX, own) if name and os.path.isdir(os.path.join(home, name))]
    return [
        Mount(path=home, access=Access.HIDE),
        *(Mount(path=path, access=Access.READ, source=path) for path in seen),
    ]


def _hidden(further: Iterable[str], root: str, covered: Iterable[str]) -> Iterator[str]:
    """The hidden paths that exist. `covered` are paths whose content is not that of the machine, or is given."""
    paths = [*map(os.path.expanduser, _HIDDEN), *(_expanded(path, root) for path in further)]
    paths += [path for name in _HIDDEN_VARIABLES for path in _paths_in(os.environ, name)]
    seen = [*covered, _OF_NAMES]
    for path in (*paths, *_sockets()):
        real = os.path.realpath(path)
        is_named = path in paths
        if not os.path.lexists(real) or (not is_named and any(is_below(real, other) for other in seen)):
            continue
        if (is_named or _is_socket(real)) and real not in seen:
            seen.append(real)
            yield real


def _sockets() -> list[str]:
    """The paths of the sockets that programs of the machine have opened."""
    try:
        with open(_SOCKETS, encoding="utf-8", errors="surrogateescape") as table:
            fields = [line.rstrip("\n").split(None, 7) for line in table]
    except OSError:
        return []
    paths = (field[7] for field in fields[1:] if len(field) == 8 and field[7].startswith("/"))
    return list(dict.fromkeys(paths))[:_MAX_SOCKETS]


def _is_socket(path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISSOCK(os.stat(path).st_mode)
    return False


def _paths_in(env: Mapping[str, str], name: str) -> list[str]:
    """The paths in a variable: `/path`, `unix:///path`, `unix:path=/path,guid=…`, `/path,pid,number`."""
    words = env.get(name, "").replace("unix:path=", "").replace("unix://", "").replace(";", ",").split(",")
    return [word for word in words if word.startswith("/") and word.strip("/")]


def _needed_of_run() -> Iterator[str]:
    resolver = os.path.realpath(_RESOLVER)
    yield from (os.path.realpath(path) for path in _OF_RUN if os.path.isdir(path))
    if is_below(resolver, "/run"):
        yield resolver


def _client_home(client: Client, env: Mapping[str, str]) -> str:
    chosen = env.get(client.home_variable, "") if client.home_variable else ""
    return os.path.realpath(chosen or _home_path(client.home, env)) if chosen or client.home else ""


def _home_path(path: str, env: Mapping[str, str]) -> str:
    return path.replace("~", env.get("HOME") or os.path.expanduser("~"), 1)


def _expanded(path: str, root: str) -> str:
    return os.path.realpath(os.path.join(root, os.path.expandvars(os.path.expanduser(path))))
