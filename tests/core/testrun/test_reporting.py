"""How runners are asked for a report: only where it is sure which program gets the options."""

import json

import pytest

from detent.core.testrun.reporting import asked_report, own_files

PACKAGE = json.dumps({"scripts": {"test": "vitest run", "unit": "jest", "lint": "eslint .", "go": "jest && echo ok"}})
VITEST = "--reporter=default --reporter=junit --outputFile.junit=/r/vitest.xml"
JEST = "--json --outputFile=/r/jest.json"


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("vitest run", f"vitest run {VITEST}"),
        ("npx vitest run", f"npx vitest run {VITEST}"),
        ("npm test", f"npm test -- {VITEST}"),
        ("npm t", f"npm t -- {VITEST}"),
        ("pnpm test", f"pnpm test {VITEST}"),
        ("yarn test", f"yarn test {VITEST}"),
        ("jest --ci", f"jest --ci {JEST}"),
        ("npm run build && jest", f"npm run build && jest {JEST}"),
        ("playwright test", "playwright test --reporter=list,junit"),
        ("go test ./...", "set -o pipefail; go test ./... -json | tee /r/go.json"),
        ("cargo nextest run", "cargo nextest run --tool-config-file detent:/r/nextest.toml"),
    ],
)
def test_a_runner_at_the_end_of_a_command_is_asked(command, asked):
    assert asked_report(command, "/r", PACKAGE).command == asked


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q",
        "make test",
        "npm run lint",
        "npm test -- -t one",
        "jest | tail",
        "jest; true",
        "jest || true",
        "jest &",
        "jest # all of them",
        "(jest)",
        "jest && echo ok",
        "echo $(jest)",
        "jest --help",
        "jest -- a.test.js",
    ],
)
def test_no_other_command_is_changed(command):
    assert asked_report(command, "/r", PACKAGE).command == command


@pytest.mark.parametrize("package", [None, "{", "[]", '{"scripts": []}', '{"scripts": {"test": "jest && echo"}}'])
def test_a_script_that_is_not_known_is_not_changed(package):
    assert asked_report("npm test", "/r", package).command == "npm test"


def test_some_runners_need_a_variable_or_a_file():
    assert asked_report("npx playwright test", "/r").env == {"PLAYWRIGHT_JUNIT_OUTPUT_FILE": "/r/playwright.xml"}
    assert asked_report("cargo nextest run", "/r").prepared == {
        "nextest.toml": '[profile.default.junit]\npath = "/r/nextest.xml"\n'
    }


def test_the_directory_is_quoted():
    assert asked_report("jest", "/r r").command == "jest --json --outputFile='/r r'/jest.json"


def test_builds_write_reports_by_themselves():
    assert own_files("mvn -q verify") == (
        "**/target/surefire-reports/TEST-*.xml",
        "**/target/failsafe-reports/TEST-*.xml",
    )
    assert own_files("./gradlew test") == ("**/build/test-results/*/TEST-*.xml",)
    assert own_files("make test") == ()
