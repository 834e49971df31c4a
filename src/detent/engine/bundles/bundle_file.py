"""The format of a bundle: a plain tar, determined by its header, that ends in a digest of everything before.

    detent-bundle.json    the header: the parts, each with its SHA-256
    journal.jsonl         the commits
    objects/<sha256>      manifests of checkpoints; with files also the contents that they name, each once
    files/<path>          evidence of gates; with files also the other files of the session's directory
    sha256                the digest

Any tar program can unpack a bundle. The reader takes nothing from tar headers: it computes those that belong between
the parts and compares them, so that links, devices and paths that lead outside are refused.
"""

import hashlib
import os
import re
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, NamedTuple

import msgspec

from detent.core.path_text import from_text, is_inside, to_text
from detent.errors import Corrupt, Invalid, NotFound, Refused
from detent.store import disk

FORMAT, VERSION = "detent-bundle", 1
HEADER, DIGEST = "detent-bundle.json", "sha256"
JOURNAL, OBJECTS, FILES = "journal.jsonl", "objects/", "files/"
MAX_HEADER_BYTES = 256 << 20
_BLOCK = 512
_CHUNK = 1 << 20
#: The digest as a file: tar header, content, and the two empty blocks that end a tar.
_TRAILER = 4 * _BLOCK
_HEX = re.compile("[0-9a-f]{64}")

#: Gets the number of bytes that are done, and of all bytes.
Progress = Callable[[int, int], None]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class Part(NamedTuple):
    """One file of the bundle."""

    name: str
    size: Count
    sha256: str
    executable: bool = False


class GitTree(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a bundle, as git names them."""

    #: The tree that a commit of all files would have. The directory of published bundles is not in it.
    tree: str
    #: The commit that was checked out; empty before the first one.
    commit: str = ""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    version: int
    written_by: str
    session: str
    #: Whether the contents of files are in it. Without them no checkpoint can be restored.
    with_files: bool
    #: None outside of a git repository.
    git: GitTree | None = None
    #: The end of the journal: its last commit and the sum of that line.
    commits: Count
    sum: str
    parts: list[Part]


class _Kind(msgspec.Struct, frozen=True):
    format: str = ""
    version: int = 0


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Header).decode
_decode_kind = msgspec.json.Decoder(_Kind).decode


def write(
    fd: int, header: Header, copies: Iterable[Callable[[int], None]], progress: Progress | None
) -> tuple[str, int]:
    """Write a bundle to an empty file; its digest and size. Each of `copies` writes a part to the descriptor."""
    text = _encode(header)
    disk.write_all(fd, _tar_header(_header_part(len(text))) + text + _padding(len(text)))
    whole = _layout(header, len(text)).end
    for part, copy in zip(header.parts, copies, strict=True):
        disk.write_all(fd, _tar_header(part))
        start = os.lseek(fd, 0, os.SEEK_CUR)
        copy(fd)
        end = os.lseek(fd, 0, os.SEEK_CUR)
        if end - start != part.size:
            raise Corrupt(f"{part.name} has {end - start} bytes and should have {part.size}")
        disk.write_all(fd, _padding(part.size))
        if progress is not None:
            progress(end, whole)
    # Read again, so that the digest is of the bytes in the file.
    digest = hashlib.sha256()
    for chunk in _chunks(fd, 0, whole):
        digest.update(chunk)
    disk.write_all(fd, _trailer(digest.hexdigest()))
    return digest.hexdigest(), whole + _TRAILER


class Reader:
    """An open bundle. Call `verify` first; after it every part is as the header says."""

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self.path = path
        self.size = os.fstat(fd).st_size
        self.digest = ""
        text = self._header_text()
        try:
            kind = _decode_kind(text)
            if kind.format != FORMAT:
                raise self._foreign()
            if kind.version > VERSION:
                raise Refused(
                    f"{path} is a bundle of format {kind.version}, and this Detent reads up to {VERSION}",
                    way_out="upgrade Detent",
                )
            self.header = _decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._damaged(f"its header cannot be read: {error}") from error
        self._check_header(self.header)
        self._text = text
        self._layout = _layout(self.header, len(text))
        if self._layout.end + _TRAILER != self.size:
            raise self._damaged(f"it has {self.size} bytes, and its header lists {self._layout.end + _TRAILER}")
        self._starts = {part.name: at for part, at in zip(self.header.parts, self._layout.starts, strict=True)}
        self.parts = {part.name: part for part in self.header.parts}

    def verify(self, progress: Progress | None = None) -> None:
        """Check every byte against the digest of the bundle and the digest of its part."""
        whole = hashlib.sha256()
        self._expect(whole, 0, _tar_header(_header_part(len(self._text))))
        self._expect(whole, _BLOCK, self._text + _padding(len(self._text)))
        for part, start in zip(self.header.parts, self._layout.starts, strict=True):
            heading = _tar_header(part)
            self._expect(whole, start - len(heading), heading)
            digest = hashlib.sha256()
            for chunk in _chunks(self._fd, start, part.size):
                whole.update(chunk)
                digest.update(chunk)
            if digest.hexdigest() != part.sha256:
                raise self._damaged(f"{part.name} does not have the SHA-256 that the header states")
            self._expect(whole, start + part.size, _padding(part.size))
            if progress is not None:
                progress(start + part.size, self.size)
        self._expect(hashlib.sha256(), self._layout.end, _trailer(whole.hexdigest()))
        self.digest = whole.hexdigest()

    def chunks(self, name: str) -> Iterator[bytes]:
        """The content of a part, compared with its digest again at the end."""
        part = self.parts[name]
        digest = hashlib.sha256()
        for chunk in _chunks(self._fd, self._starts[name], part.size):
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != part.sha256:
            raise self._damaged(f"{name} was changed while it was read")

    def read(self, name: str) -> bytes:
        return b"".join(self.chunks(name))

    def _expect(self, whole: "hashlib._Hash", offset: int, wanted: bytes) -> None:
        data = b"".join(_chunks(self._fd, offset, len(wanted)))
        if data != wanted:
            raise self._damaged(f"unexpected content at byte {offset}")
        whole.update(data)

    def _header_text(self) -> bytes:
        try:
            info = tarfile.TarInfo.frombuf(os.pread(self._fd, _BLOCK, 0), "utf-8", "surrogateescape")
        except tarfile.TarError as error:
            raise self._foreign() from error
        if info.name != HEADER or not info.isreg():
            raise self._foreign()
        if not 0 <= info.size <= min(MAX_HEADER_BYTES, self.size):
            raise self._damaged(f"its header would have {info.size} bytes")
        return b"".join(_chunks(self._fd, _BLOCK, info.size))

    def _check_header(self, header: Header) -> None:
        names = [part.name for part in header.parts]
        objects = [name for name in names if name.startswith(OBJECTS)]
        files = [name for name in names if name.startswith(FILES)]
        if names != [JOURNAL, *sorted(set(objects)), *sorted(set(files))]:
            raise self._damaged("its header lists other parts than a journal, objects and files")
        for part in header.parts:
            digest = part.name.removeprefix(OBJECTS) if part.name in objects else part.sha256
            if digest != part.sha256 or _HEX.fullmatch(part.sha256) is None:
                raise self._damaged(f"its header has an impossible digest for {part.name[:200]}")
        self._check_paths([name.removeprefix(FILES) for name in files])

    def _check_paths(self, texts: list[str]) -> None:
        directories = {parent for text in texts for parent in parents(text)}
        for text in texts:
            try:
                path = from_text(text)
            except Invalid as error:
                raise self._damaged(error.message) from error
            if not is_inside(path) or to_text(path) != text or text in directories:
                raise self._damaged(f"the path {text[:200]!r} leads outside")

    def _foreign(self) -> Invalid:
        return Invalid(f"{self.path} is not a bundle of a session", way_out="detent export bundle makes one")

    def _damaged(self, reason: str) -> Corrupt:
        return Corrupt(f"{self.path} is damaged or cut off: {reason}", way_out="copy it again, or export it again")


def is_bundle(path: str) -> bool:
    """Whether the file begins as a bundle does; it may be damaged."""
    try:
        with opened(path):
            return True
    except (Corrupt, Refused):
        return True
    except (Invalid, NotFound):
        return False


@contextmanager
def opened(path: str) -> Iterator[Reader]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Invalid(f"{path} is not a file")
        yield Reader(fd, path)
    finally:
        os.close(fd)


def parents(path: str) -> Iterator[str]:
    """The directories of the path."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


class _Layout(NamedTuple):
    #: Offset of the content of each part.
    starts: list[int]
    #: Padded end of the last part.
    end: int


def _layout(header: Header, header_bytes: int) -> _Layout:
    at = _BLOCK + header_bytes + len(_padding(header_bytes))
    starts = []
    for part in header.parts:
        at += len(_tar_header(part))
        starts.append(at)
        at += part.size + (-part.size % _BLOCK)
    return _Layout(starts, at)


def _tar_header(part: Part) -> bytes:
    info = tarfile.TarInfo(from_text(part.name))
    info.size = part.size
    info.mode = 0o755 if part.executable else 0o644
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _header_part(size: int) -> Part:
    return Part(HEADER, size, "")


def _trailer(digest: str) -> bytes:
    text = digest.encode() + b"\n"
    return _tar_header(Part(DIGEST, len(text), "")) + text + _padding(len(text)) + bytes(2 * _BLOCK)


def _padding(size: int) -> bytes:
    return bytes(-size % _BLOCK)


def _chunks(fd: int, start: int, size: int) -> Iterator[bytes]:
    """Fewer bytes at the end of the file."""
    end = start + size
    while start < end and (chunk := os.pread(fd, min(_CHUNK, end - start), start)):
        yield chunk
        start += len(chunk)
