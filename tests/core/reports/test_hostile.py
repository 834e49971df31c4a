"""A report that no tool writes is refused with a reason: beyond a limit, cut off, or made to break its reader."""

import json
import tracemalloc

import pytest

from detent.core.reports.coverage import read_coverage
from detent.core.reports.limits import MAX_BYTES, MAX_DEPTH, Unreadable
from detent.core.reports.mutants import read_mutants
from detent.core.reports.sarif import read_sarif
from detent.core.testrun.results import read_results

HUGE = MAX_BYTES + 1
#: Each entity is twice the one before it: 10 GB in all.
BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE t [<!ENTITY a0 "aaaaaaaaaa">'
    + b"".join(b'<!ENTITY a%d "&a%d;&a%d;">' % (n, n - 1, n - 1) for n in range(1, 31))
    + b"]><%s><x name='&a30;'/></%s>"
)
EXTERNAL = b'<!DOCTYPE %s SYSTEM "file:///etc/hostname"><%s/>'
DEEP = b"<a>" * (MAX_DEPTH + 1) + b"</a>" * (MAX_DEPTH + 1)
NESTED = b"[" * 200_000


def results(data):
    return read_results([data])


def bomb(tag):
    return BOMB % (tag, tag)


@pytest.mark.parametrize(
    ("read", "data", "reason"),
    [
        (results, bomb(b"testsuite"), "document type"),
        (results, EXTERNAL % (b"testsuite", b"testsuite"), "document type"),
        (results, DEEP, "deeper than"),
        (results, b"<testsuite><testcase name='a'/>", "not valid XML"),
        (results, b"", "not valid XML"),
        (results, b"<html/>", "no test suite"),
        (results, b'{"testResults": [{"name": "a", "asser', "JSON"),
        (results, b'{"Action":"run","Test":"A"}\n{"Action":"pa', "no event"),
        (results, b'{"Action":"start"}\n', "cut off"),
        (read_coverage, bomb(b"coverage"), "document type"),
        (read_coverage, b"<coverage><classes>", "not valid XML"),
        (read_coverage, b"<html/>", "no coverage element"),
        (read_coverage, b"SF:a.py\nDA:1,1\n", "cut off"),
        (read_coverage, b"SF:a.py\nDA:x,1\nend_of_record\n", "no number"),
        (read_coverage, b'{"files": {"a.py": {"executed_lines": [1', "JSON"),
        (read_coverage, b"TOTAL 100%", "neither"),
        (read_sarif, b'{"version": "2.1.0", "runs": [{"results": [', "JSON"),
        (read_sarif, b'{"version": "1.0.0", "runs": []}', "only 2.1.0"),
        (read_sarif, b'{"version": "2.1.0", "runs": []}', "no run"),
        (read_sarif, b'{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}}]}', "did not finish"),
        (read_sarif, b'{"version": "2.1.0", "runs": ' + NESTED, "JSON"),
        (read_mutants, b'{"files": {"a": {"mutants": [{"id": "1"}]}}}', "JSON"),
    ],
)
def test_it_is_refused_with_a_reason(read, data, reason):
    with pytest.raises(Unreadable, match=reason):
        read(data)


@pytest.mark.parametrize("read", [results, read_coverage, read_sarif, read_mutants])
def test_beyond_the_size_nothing_is_parsed(read):
    with pytest.raises(Unreadable, match=f"has {HUGE} bytes; the limit is {MAX_BYTES}"):
        read(bytes(HUGE))


def test_no_entity_is_expanded():
    tracemalloc.start()
    with pytest.raises(Unreadable):
        results(bomb(b"testsuite"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 1024 * 1024


def test_a_run_of_a_tool_that_failed_is_no_evidence():
    run = {"tool": {"driver": {"name": "x"}}, "results": [], "invocations": [{"executionSuccessful": False}]}

    with pytest.raises(Unreadable, match="x says that it did not finish"):
        read_sarif(json.dumps({"version": "2.1.0", "runs": [run]}).encode())
