"""A client that starts in the project is told where the work stands."""

from tests.clients.scripts import say
from tests.clients.workplace import play, set_up


def test_a_new_session_and_a_resumed_one_are_told_where_the_work_stands(stage):
    set_up(stage, "plan-implement-review", "Add login")

    first = play(stage, "[[S:one]] go", {"one": [say("enough for today")]})
    play(stage, "[[S:two]] go", {"two": [say("enough for today")]})
    stage.detent("finish", "PLAN", "-m", "The plan is in plan.md", "--context", "Mind the cookies")
    token = stage.detent("begin", "IMPLEMENT").split("token ")[1].split()[0]
    play(stage, "[[S:three]] go on", {"three": [say("enough for today")]}, resume=first.session_id)

    for conversation in ("one", "two"):
        told = stage.server.conversation(conversation)[0].told
        assert "Detent holds this work to the workflow plan-implement-review: Add login" in told
        assert "In progress: PLAN, attempt 1 (token PLAN" in told
        assert "From PLAN" not in told
    told = stage.server.conversation("three")[0].told
    assert f"In progress: IMPLEMENT, attempt 1 (token {token})" in told
    assert "From PLAN: The plan is in plan.md" in told
    assert "Mind the cookies" in told
