"""The paths that copying programs write: they copy, move, link, pack, unpack and fetch."""

from detent.core.guard.path_pattern import ABSOLUTE, ANY, ONE, STAR
from detent.core.guard.shell.writes import EXCEPT, Option, Target, has, options, values

_VALUED = {
    "cp": "-t -S --target-directory --suffix",
    "mv": "-t -S --target-directory --suffix",
    "ln": "-t -S --target-directory --suffix",
    "install": "-t -S -m -o -g --target-directory --suffix --mode --owner --group",
    "rsync": "-e -f -M -B -T --rsh --filter --exclude --include --exclude-from --include-from --files-from --log-file"
    " --backup-dir --chmod --bwlimit --compare-dest --copy-dest --link-dest --max-size --min-size --timeout --port"
    " --partial-dir --suffix",
    "scp": "-P -i -o -F -c -J -l -S",
}
_TAR_LONG = {
    "--extract": "x",
    "--get": "x",
    "--create": "c",
    "--list": "t",
    "--to-stdout": "O",
    "--append": "r",
    "--update": "u",
    "--file": "f",
    "--directory": "C",
}


def copied(name: str, args: list[str]) -> list[Target]:
    """The paths that one of these programs writes."""
    if name in ("tar", "bsdtar", "gtar"):
        return _tar(args)
    if name in ("unzip", "7z", "7za", "zip", "cpio"):
        return _packed(name, args)
    if name in ("curl", "wget"):
        return _fetched(name, args)
    return _placed(name, args)


def _placed(name: str, args: list[str]) -> list[Target]:
    flags, rest = options(args, _VALUED.get(name, ""))
    folders = values(flags, "-t --target-directory")
    if name == "rsync" and has(flags, "-n --dry-run"):
        return []
    if name == "install" and has(flags, "-d --directory"):
        return []
    sources, into = (rest, folders[0] + "/") if folders else (rest[:-1], "".join(rest[-1:]))
    if name == "ln" and len(rest) == 1 and not folders:
        sources, into = rest, "./"
    if not sources or (name in ("rsync", "scp") and ":" in into.partition("/")[0]):
        return [(path, "mv") for path in sources] if name == "mv" else []
    whole = name in ("mv", "ditto", "scp") or has(flags, "-r -R -a --recursive --archive")
    targets = _destinations(name, sources, into, below=whole, directly=has(flags, "-T --no-target-directory"))
    if name == "mv":
        targets.extend((path, "mv") for path in sources)
    elif name in ("ln", "link") or (name == "cp" and has(flags, "-l -s --link --symbolic-link")):
        targets.extend((_seen_from(into, path, relative=has(flags, "-s --symbolic")), "ln to") for path in sources)
    elif name == "rsync":
        targets.extend(_rsynced(flags, sources, into))
    return targets


def _destinations(name: str, sources: list[str], into: str, *, below: bool, directly: bool) -> list[Target]:
    """The destination may be a file or a directory: both are said."""
    deep = "mv" if name == "mv" else "cp -r"
    flat = "mv to" if name == "mv" else name
    targets: list[Target] = [(into, flat)]
    if directly:
        return [(into, deep if below else flat)]
    for source in sources:
        base = source.rstrip("/").rpartition("/")[2]
        if base in ("", ".", "..", STAR, ANY, STAR + ANY) or (name == "rsync" and source.endswith("/")):
            continue
        targets.append((f"{into.rstrip('/') or '/'}/{base}", deep if below else flat))
    return targets


def _rsynced(flags: list[Option], sources: list[str], into: str) -> list[Target]:
    targets: list[Target] = []
    if any(name.startswith("--delete") or name == "--del" for name, _ in flags):
        targets.append((into, "rsync --delete"))
        targets.extend(excepted(into, values(flags, "--exclude")))
    if has(flags, "--remove-source-files"):
        targets.extend((path, "mv") for path in sources)
    targets.extend((path, "rsync") for path in values(flags, "--log-file"))
    return targets


def excepted(folder: str, names: list[str]) -> list[Target]:
    """The excluded paths below `folder`: a name at any depth, a path from `folder` on."""
    targets: list[Target] = []
    for name in names:
        inner = name.strip("/").removesuffix("/**").removesuffix("/*")
        start = f"{folder}/" if "/" in name.rstrip("/").removesuffix("/**").removesuffix("/*") else f"{folder}/{ANY}/"
        for path in (start + inner, f"{folder}/{inner}"):
            targets.append((path.replace("*", STAR), EXCEPT))
            targets.append((f"{path.replace('*', STAR)}/{ANY}", EXCEPT))
    return targets


def _seen_from(link: str, source: str, *, relative: bool) -> str:
    """The target of a symbolic link is relative to the link."""
    if not relative or source.startswith(ABSOLUTE):
        return source
    folder, slash, _ = link.rpartition("/")
    return folder + slash + source


def _tar(args: list[str]) -> list[Target]:
    letters, given, members = _tar_arguments(args)
    folder = given.get("C", ".")
    if "t" in letters or "O" in letters:
        return []
    if "x" in letters:
        return [(f"{folder}/{member}", "tar member") for member in members] if members else [(folder, "tar -x")]
    archive = given.get("f", "-")
    targets = [(archive, "tar -c")] if archive != "-" else []
    return targets + [(f"{folder}/{member}", "rm -r") for member in members if "--remove-files" in args]


def _tar_arguments(args: list[str]) -> tuple[str, dict[str, str], list[str]]:
    """Letters, the values of those that have one, and members. The first argument needs no dash."""
    letters = ""
    given: dict[str, str] = {}
    members: list[str] = []
    at = 0
    while at < len(args):
        arg = args[at]
        at += 1
        if arg.startswith("--"):
            name, equals, value = arg.partition("=")
            letter = _TAR_LONG.get(name, "")
            letters += letter
            if not equals and (letter in ("f", "C") or name in ("--exclude", "--strip-components", "--transform")):
                value = "".join(args[at : at + 1])
                at += 1
            given[letter] = value
        elif arg.startswith("-") or at == 1:
            cluster = arg.lstrip("-")
            for index, letter in enumerate(cluster):
                letters += letter
                if letter not in "fCbTX":
                    continue
                value = cluster[index + 1 :] if arg.startswith("-") else ""
                if not value:
                    value = "".join(args[at : at + 1])
                    at += 1
                given[letter] = value
                if arg.startswith("-"):
                    break
        else:
            members.append(arg)
    return letters, given, members


def _packed(name: str, args: list[str]) -> list[Target]:
    if name == "cpio":
        return [(".", "cpio")] if any(arg[:2] in ("-i", "-p") for arg in args) else []
    if name.startswith("7z"):
        folders = [arg[2:] for arg in args if arg.startswith("-o")]
        if args[:1] in (["x"], ["e"]):
            return [(folder, "7z x") for folder in folders or ["."]]
        return [(path, "7z a") for path in args[1:2]] if args[:1] == ["a"] else []
    if name == "zip":
        flags, rest = options(args, "-x -i -b -n -t -tt")
        return [(path, "zip") for path in rest[:1]] + [(path, "rm -r") for path in rest[1:] if has(flags, "-m --move")]
    flags, rest = options(args, "-d -x -P")
    if has(flags, "-l -p -t -v -Z -z"):
        return []
    folder = "".join(values(flags, "-d")) or "."
    return [(f"{folder}/{member}", "tar member") for member in rest[1:]] or [(folder, "unzip")]


def _fetched(name: str, args: list[str]) -> list[Target]:
    if name == "curl":
        valued = (
            "-o -H -d -X -u -A -e -b -c -D -F -T -K -m -w -x -E --output --output-dir --header --data --data-raw"
            " --data-binary --request --user --url --cookie --cookie-jar --dump-header --form --max-time --retry"
            " --proxy --cacert --write-out --connect-timeout"
        )
        flags, rest = options(args, valued)
        folder = "".join(directory + "/" for directory in values(flags, "--output-dir")[:1])
        paths = values(flags, "-c -D --cookie-jar --dump-header") + [
            folder + path for path in values(flags, "-o --output")
        ]
        if has(flags, "-O --remote-name --remote-name-all"):
            paths += [folder + _last(url) for url in rest + values(flags, "--url")]
        return [(path, "curl -o") for path in paths if path != "-"]
    flags, rest = options(
        args, "-O -P -o -a -U -t -T -e -A -R --output-document --directory-prefix --output-file --header --post-data"
    )
    outputs = values(flags, "-O --output-document")
    folder = "".join(directory + "/" for directory in values(flags, "-P --directory-prefix")[:1])
    paths = [path for path in outputs if path != "-"] or (
        [] if outputs or has(flags, "--spider") else [folder + _last(url) for url in rest]
    )
    return [(path, "wget -O") for path in paths + values(flags, "-o -a --output-file")]


def _last(url: str) -> str:
    return url.replace(ONE, "?").partition("?")[0].rstrip("/").rpartition("/")[2] or "index.html"
