"""Which files a test runner reads, and which part of a shared file steers it."""

import json
import tomllib

import pytest

from detent.core.testrun.runner_files import RUNNERS, Role, roles
from detent.core.testrun.runner_part import MAX_BYTES, runner_part, with_runner_part

TESTS = """
    tests/test_a.py test_b.py pkg/b_test.py tests/helpers/data_maker.py tests/__init__.py tests/unit/test_c.py
    tests/unit/shared.py tests/calc.pyc tests/calc.cpython-311.so src/pkg/test_inner.py tests/__snapshots__/test_a.ambr
    src/a.test.ts src/a.spec.tsx src/__tests__/b.js src/__mocks__/fs.js src/__snapshots__/a.test.ts.snap test/a.js
    tests/cli.rs crates/x/tests/common/mod.rs pkg/a_test.go
    src/test/java/com/x/ATest.java src/test/java/com/x/Maker.java src/test/kotlin/B.kt
"""
SETTINGS = """
    conftest.py tests/conftest.py deep/er/conftest.py pytest.ini .pytest.ini pytest.toml .coveragerc sitecustomize.py
    jest.config.js jest.setup.ts vitest.config.mts .mocharc .mocharc.yml .npmrc .cargo/config.toml .config/nextest.toml
    .mvn/maven.config src/test/resources/junit-platform.properties pytest.py _pytest/main.py src/pytest.py noxfile.py
    pytest.pyc pluggy.pyc _pytest.cpython-311.so
"""
STAND_INS = (
    "shlex.py re/__init__.py src/argparse.py json.pyc ast/__init__.pyc select.cpython-311.so packaging/__init__.py"
)
SHARED = (
    "pyproject.toml setup.cfg tox.ini package.json web/package.json Cargo.toml pom.xml build.gradle build.gradle.kts"
)
OTHERS = """
    src/app.py src/contest.py README.md docs/testing.md src/latest.ts tests/data/golden.txt tests/fixtures/a.json
    tests/__pycache__/calc.cpython-311.pyc
    lib/shlex.py shlex/quote.py cmd/main.go json.txt test.pyc
    django/test/client.py src/protest.py src/fastest.go setup.py src/config.toml testing.cfg
"""


@pytest.mark.parametrize(
    ("named", "role"),
    [(TESTS, Role.TEST), (SETTINGS, Role.SETTINGS), (SHARED, Role.SHARED), (STAND_INS, Role.STAND_IN)],
)
def test_files_are_known_by_the_naming_rules_of_the_runners(named, role):
    assert roles(named.split()) == dict.fromkeys(named.split(), role)


def test_other_files_and_data_of_tests_belong_to_no_runner():
    assert roles(OTHERS.split()) == {}


def test_code_beside_tests_is_a_helper_and_code_in_a_directory_without_tests_is_not():
    assert roles(["test/client.py"]) == {}
    assert set(roles(["test/client.py", "test/deep/test_x.py"])) == {"test/client.py", "test/deep/test_x.py"}


def test_the_runners_that_are_promised_have_rules():
    assert set(RUNNERS) >= {"pytest", "unittest", "jest", "vitest", "mocha", "cargo", "go", "maven"}


PYPROJECT = """[project]
name = "calc"
version = "1.0"  # ünïcode
dependencies = ["left-pad"]

[project.scripts]
calc = "calc:main"

[tool.pytest.ini_options]
addopts = "-q"
testpaths = [
    "tests",
]

# the linter
[tool.ruff]
line-length = 100
"""
SETUP_CFG = """[metadata]
name = calc
version = 1.0

[options]
install_requires =
    left-pad

[options.entry_points]
console_scripts =
    calc = calc:main

[tool:pytest]
addopts = -q
"""
TOX_INI = """[tox]
envlist = py311

[testenv]
deps =
    pytest
commands =
    pytest -q

[pytest]
addopts = -q
"""
PACKAGE = """{
  "name": "calc",
  "version": "1.0.0",
  "bin": { "calc": "./calc.js" },
  "scripts": {
    "build": "tsc",
    "test": "npm run unit",
    "unit": "vitest run"
  },
  "dependencies": { "left-pad": "^1.0.0" },
  "jest": { "testMatch": ["**/*.test.js"] }
}
"""
CARGO = """[package]
name = "calc"
version = "0.1.0"

[dependencies]
serde = "1"

[[test]]
name = "cli"
path = "tests/cli.rs"
"""
POM = """<?xml version="1.0" encoding="UTF-8"?>
<project>
  <version>1.0</version>
  <properties>
    <java.version>21</java.version>
    <skipTests>false</skipTests>
  </properties>
  <dependencies>
    <dependency><artifactId>guava</artifactId></dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin>
        <artifactId>maven-surefire-plugin</artifactId>
        <configuration><includes><include>**/*Test.java</include></includes></configuration>
        <dependencies><dependency><artifactId>junit</artifactId></dependency></dependencies>
      </plugin>
    </plugins>
  </build>
</project>
"""
GRADLE = """plugins { id 'java' }
version = '1.0'
dependencies {
    testImplementation 'org.junit:junit:5'
}
application { mainClass = 'calc.Main' }
test {
    useJUnitPlatform() // } not the end
    filter { includeTestsMatching "*Test" }
}
check.dependsOn test
"""
VITE = """export default defineConfig({
  plugins: [react()],
  test: {
    include: ['src/**/*.test.ts'],
  },
})
"""
FILES = {
    "pyproject.toml": PYPROJECT,
    "setup.cfg": SETUP_CFG,
    "tox.ini": TOX_INI,
    "package.json": PACKAGE,
    "Cargo.toml": CARGO,
    "pom.xml": POM,
    "build.gradle": GRADLE,
    "build.gradle.kts": GRADLE,
    "vite.config.ts": VITE,
}
#: A dependency, an entry point and a version, as far as the file has one.
HONEST = {
    "pyproject.toml": [('"left-pad"', '"left-pad", "right-pad"'), ("calc:main", "calc.cli:main"), ("1.0", "2.0")],
    "setup.cfg": [("left-pad", "left-pad\n    right-pad"), ("calc:main", "calc.cli:main"), ("1.0", "2.0")],
    "tox.ini": [
        ("    pytest\n", "    pytest\n    right-pad\n"),
        ("py311", "py311, py312"),
        ("[tox]", "[tox]\nskipsdist = 1"),
    ],
    "package.json": [('"left-pad"', '"right-pad": "2", "left-pad"'), ("./calc.js", "./cli.js"), ("1.0.0", "2.0.0")],
    "Cargo.toml": [
        ("serde =", 'rand = "1"\nserde ='),
        ("[dependencies]", '[[bin]]\nname = "b"\n\n[dependencies]'),
        ("0.1.0", "0.2.0"),
    ],
    "pom.xml": [("<dependencies>\n", "<dependencies><dependency/>\n"), ("21", "25"), (">1.0<", ">2.0<")],
    "build.gradle": [
        ("testImpl", "implementation 'right-pad'\n    testImpl"),
        ("calc.Main", "calc.Cli"),
        ("1.0", "2.0"),
    ],
    "build.gradle.kts": [
        ("testImpl", "implementation 'right'\n    testImpl"),
        ("calc.Main", "calc.Cli"),
        ("1.0", "2.0"),
    ],
    "vite.config.ts": [
        ("react()", "react(), svgr()"),
        ("export", "import x from 'x'\nexport"),
        ("})", "  base: '/x',\n})"),
    ],
}
CHEATS = {
    "pyproject.toml": [
        ('addopts = "-q"', 'addopts = "-q -k one"'),
        ("[tool.ruff]", "[tool.coverage.report]\nomit = ['*']\n\n[tool.ruff]"),
        (PYPROJECT[PYPROJECT.index("[tool.pytest") : PYPROJECT.index("# the linter")], ""),
        ("[tool.ruff]", '[project.entry-points.pytest11]\nevil = "evil"\n\n[tool.ruff]'),
    ],
    "setup.cfg": [("addopts = -q", "addopts = -q -k one"), ("[tool:pytest]\naddopts = -q\n", "")],
    "tox.ini": [
        ("addopts = -q", "addopts = -k one"),
        ("    pytest -q", "    true"),
        ("[testenv]", "[testenv]\nsetenv = A=b"),
    ],
    "package.json": [
        ('"npm run unit"', '"true"'),
        ('"vitest run"', '"echo 3 passed"'),
        ('    "test": "npm run unit",\n', ""),
        ('"**/*.test.js"', '"one.test.js"'),
        ('"build": "tsc"', '"pretest": "rm -r tests"'),
        (',\n  "jest": { "testMatch": ["**/*.test.js"] }', ""),
        ('"build": "tsc",', '"build": "tsc", "posttest": "true",'),
    ],
    "Cargo.toml": [("tests/cli.rs", "tests/none.rs"), ('version = "0.1.0"', 'version = "0.1.0"\nautotests = false')],
    "pom.xml": [
        ("<skipTests>false", "<skipTests>true"),
        ("**/*Test.java", "**/One.java"),
        ("    <skipTests>false</skipTests>\n", ""),
        ("<properties>", "<properties><maven.test.failure.ignore>true</maven.test.failure.ignore>"),
        (POM[POM.index("      <plugin>") : POM.index("    </plugins>")], ""),
    ],
    "build.gradle": [
        ('"*Test"', '"OneTest"'),
        ("useJUnitPlatform()", "useJUnitPlatform(); enabled = false"),
        ("check.dependsOn test\n", "test.enabled = false\n"),
        ("check.dependsOn test\n", "tasks.withType(Test) { ignoreFailures = true }\n"),
    ],
    "vite.config.ts": [("src/**/*.test.ts", "src/one.test.ts"), ("plugins:", "base: '/'  , plugins:")],
}


def changed(name, edits):
    text = FILES[name]
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return text.encode()


@pytest.mark.parametrize("name", FILES)
def test_a_dependency_an_entry_point_and_a_version_leave_the_runners_part_alone(name):
    old, new = FILES[name].encode(), changed(name, HONEST[name])

    assert runner_part(name, old)
    assert runner_part(name, new) == runner_part(name, old)
    assert with_runner_part(name, new, old) == new


CASES = [(name, number) for name, edits in CHEATS.items() for number in range(len(edits))]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_the_old_part_is_put_into_the_new_file_and_the_rest_stays(name, number):
    old, new = FILES[name].encode(), changed(name, [CHEATS[name][number], *HONEST[name]])

    merged = with_runner_part(name, new, old)

    assert merged is not None
    assert runner_part(name, merged) == runner_part(name, old)
    for _, text in HONEST[name]:
        assert text.encode() in merged
    match name.rpartition(".")[2]:
        case "json":
            assert json.loads(merged)["version"] == "2.0.0"
        case "toml":
            tomllib.loads(merged.decode())


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_new_has_no_part_of_the_runner(name):
    merged = with_runner_part(name, FILES[name].encode(), None)

    assert merged is not None
    assert runner_part(name, merged) == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", 'tool = { pytest = { ini_options = { addopts = "-k one" } } }'),
        ("pyproject.toml", '[tool]\npytest.ini_options.addopts = "-k one"'),
        ("pyproject.toml", '[tool]\n"pytest" = {ini_options = {}}'),
        ("pyproject.toml", "[tool.pytest.ini_options\n"),
        ("pyproject.toml", 'x = """\n[tool.pytest.ini_options]\n"""\n'),
        ("Cargo.toml", 'test = [{ name = "x" }]'),
        ("setup.cfg", "[tool:pytest]\na = 1\n[x]\n[tool:pytest]\n" + "x" * MAX_BYTES),
        ("package.json", '{"scripts": {"test": "a"}, "scripts": {"test": "b"}}'),
        ("package.json", "[1]"),
        ("package.json", '{"scripts": '),
        ("pom.xml", "<project><build>"),
        ("pom.xml", '<!DOCTYPE p [<!ENTITY a "b">]><project/>'),
        ("build.gradle", "test {"),
        ("Makefile", "test:\n\ttrue\n"),
    ],
)
def test_a_part_that_cannot_be_separated_is_told_apart_from_an_empty_one(name, text):
    assert runner_part(name, text.encode()) is None
    assert with_runner_part(name, text.encode(), FILES.get(name, "").encode()) is None


def test_comments_and_blank_lines_change_nothing():
    again = PYPROJECT.replace("testpaths", "# where\n\ntestpaths").replace("# the linter", "# ruff")

    assert runner_part("pyproject.toml", again.encode()) == runner_part("pyproject.toml", PYPROJECT.encode())
