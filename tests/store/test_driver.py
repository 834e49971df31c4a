"""A project in files needs no driver of a database, and loads none."""

from detent.store.address import described
from detent.store.shared_names import KINDS, may_be_shared, shared_kind
from tests.support.command import Tool, loaded


def test_commands_on_files_load_nothing_of_a_database(tmp_path, nobody):
    tool = Tool(tmp_path)
    (tmp_path / "detent.toml").write_text('gates = "off"\n')

    for arguments in (("init",), ("start", "feature", "Add login"), ("finish", "-m", "done"), ("status",)):
        names = loaded(tool, *arguments)
        assert [name for name in names if "psycopg" in name or name.startswith("detent.store.postgres")] == []


def test_the_address_for_people_has_no_password_and_no_parameters():
    assert described("nonsense") == "nonsense"
    assert described("postgresql://ada:hunter2@db:5433/detent?sslpassword=x") == "postgresql://ada@db:5433/detent"


def test_every_shared_kind_is_listed_by_its_prefix():
    for kind in KINDS:
        name = f"WFS-trial/{kind.prefix}x"
        assert shared_kind(name) == kind
        assert may_be_shared("WFS-trial/")
        assert may_be_shared(f"WFS-trial/{kind.prefix}")
    for name in ("state.json", "history.jsonl", "WFS-trial/workflow-session.json", "WFS-trial/.task/IMPL-1.json"):
        assert shared_kind(name) is None
