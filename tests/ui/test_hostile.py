"""Text of agents stays text, wherever it stands."""

from tests.support.page_project import SESSION, PageProject

IMAGE = "<img src=x onerror=alert(1)>"
SCRIPT = "</script><script>alert(2)</script>"
ANSI = "\x1b[31mred\x1b[0m\x1b]8;;http://x\x07"
REVERSED = "abc\u202egnp.exe"
LONG = "x" * 1_000_000


def test_hostile_text_stays_text_on_every_screen(tmp_path, tabs, at):
    project = PageProject(tmp_path)
    try:
        project.detent("start", "trial", f"{IMAGE} {SCRIPT}", "--name", "let-a-wallet-pay")
        project.detent("task", "add", f"{IMAGE} {REVERSED}", "--require", SCRIPT)
        project.detent("finish", "plan", "-m", "-", typed=f"{IMAGE} {ANSI} {REVERSED} {LONG}")
        project.detent("begin", "build")
        project.detent("ask", f"{IMAGE} {REVERSED}", "--choice", IMAGE, "--choice", "no", "--no-wait")
        (project.root / f"{IMAGE.replace('/', '_')}.py").write_text(f"{SCRIPT}\n{ANSI} {REVERSED}\n")
        (project.root / "one-line.txt").write_text(LONG)
        _look(project, tabs, at)
    finally:
        project.stop()


def _look(project, tabs, at):
    window = tabs()
    tab = window.open(project.serve())
    tab.on("dialog", lambda dialog: window.problems.append(dialog.message))
    tab.get_by_text("onerror").first.wait_for()
    places = ["", f"s/{SESSION}", f"s/{SESSION}/log", f"s/{SESSION}/phase/plan", f"s/{SESSION}/tasks"]
    places += [f"s/{SESSION}/tasks/IMPL-1", f"s/{SESSION}/review/build", f"s/{SESSION}/checkpoints", "history", "start"]
    for place in places:
        at(tab, place)
        tab.get_by_role("main").wait_for()
        tab.wait_for_timeout(400)
        # Nothing of it became an element, and nothing of it reorders the text around it.
        assert tab.locator("main img, main script").count() == 0
        text = tab.locator("body").inner_text()
        assert "\u202e" not in text
        assert "\x1b" not in text
        assert len(text) < 200_000, place
    at(tab, f"s/{SESSION}/review/build")
    tab.get_by_text("\u2039U+202E\u203a").first.wait_for()
    tab.get_by_text("␛[31m").first.wait_for()
