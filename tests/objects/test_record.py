import hashlib
import os

import pytest

from detent.objects.record import MAX_HEADER, Header, encode, parse, scan

HEADER = Header(sha256=hashlib.sha256(b"data").hexdigest(), form="raw", bytes=4, size=4)
RECORD = encode(HEADER) + b"data\n"


@pytest.fixture
def scanned(tmp_path):
    def scanned(data, start=0):
        path = tmp_path / "segment"
        path.write_bytes(data)
        fd = os.open(path, os.O_RDONLY)
        try:
            return [(found.offset, found.end) for found in scan(fd, start, len(data))]
        finally:
            os.close(fd)

    return scanned


def test_a_header_is_read_back():
    line = encode(HEADER)

    assert parse(line + b"anything") == (HEADER, len(line))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        encode(HEADER)[:-1],
        b" " + encode(HEADER),
        encode(HEADER).replace(b"raw", b"\xff\xff\xff"),
        encode(HEADER).replace(HEADER.sha256.encode(), HEADER.sha256.upper().encode()),
        encode(HEADER).replace(HEADER.sha256.encode(), HEADER.sha256[1:].encode()),
        encode(HEADER).replace(b'"bytes":4', b'"bytes":-4'),
        encode(HEADER).replace(b'"bytes":4', b'"bytes":4e9'),
        encode(HEADER).replace(b'"bytes":4', b'"bytes":99999999999999999999'),
        encode(HEADER).replace(b'"size":4', b'"size":99999999999999999999'),
        encode(HEADER).replace(b'"size":4', b'"path":"' + b"x" * MAX_HEADER + b'","size":4'),
    ],
)
def test_what_is_no_header_is_none(line):
    assert parse(line) is None


def test_the_longest_name_fits():
    name = os.fsdecode(b"\xff") * 255
    path = f"{'o' * 255}/{HEADER.sha256}/" + name.encode("utf-8", "surrogateescape").hex()
    line = encode(Header(sha256=HEADER.sha256, form="file", bytes=0, size=0, path=path + "\\\\x" * 255))

    assert parse(line) is not None


@pytest.mark.parametrize("gap", [b"", b"x", b"\n\n", RECORD[:40], b"\0" * 3_000_000])
def test_what_lies_between_records_is_skipped(scanned, gap):
    size = len(RECORD)

    assert scanned(RECORD + gap + RECORD) == [(0, size), (size + len(gap), 2 * size + len(gap))]
    assert scanned(RECORD + gap) == [(0, size)]
    assert scanned(gap + RECORD, len(gap)) == [(len(gap), len(gap) + size)]


def test_a_record_that_does_not_end_is_one_nevertheless(scanned):
    """Its content decides. What its header makes it swallow is found too."""
    size = len(RECORD)
    longer = RECORD.replace(b'"bytes":4', b'"bytes":9')

    assert scanned(RECORD[:-1] + b"?" + RECORD) == [(0, size), (size, 2 * size)]
    assert scanned(RECORD + RECORD[:-1]) == [(0, size)]
    assert scanned(longer + RECORD) == [(0, size + 5), (size, 2 * size)]


def test_records_are_found_across_the_parts_that_are_read(scanned):
    number = 3_000_000 // len(RECORD)

    assert len(scanned(RECORD * number)) == number
    assert len(scanned(RECORD + b"?" * 1_048_570 + RECORD * 9)) == 10
