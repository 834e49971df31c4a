"""The rules of `Plan` once more, slow and plain: every answer is worked out from the rows alone."""

from hypothesis import settings
from hypothesis import strategies as st

from detent.core.task.id import TaskId, parse_id
from detent.core.task.row import Row, TaskStatus

IDS = ["IMPL-1", "IMPL-2", "IMPL-2.1", "IMPL-2.2", "IMPL-3", "IMPL-3.1", "IMPL-3.10", "IMPL-10", "IMPL-11", "IMPL-12"]
S = TaskStatus
#: Large examples take their time on a busy machine.
calm = settings(deadline=None)


def number(id_: str) -> TaskId:
    return parse_id(id_)


@st.composite
def some_row(draw: st.DrawFn, ids: list[str] = IDS) -> Row:
    return Row(
        id=draw(st.sampled_from(ids)),
        title="t",
        status=draw(st.sampled_from(list(S))),
        depends_on=tuple(draw(st.lists(st.sampled_from(ids), max_size=2))),
    )


@st.composite
def sound_rows(draw: st.DrawFn) -> dict[str, Row]:
    """Rows without circles: dependencies go to lower ids of a hidden order of the main tasks, or to earlier parts."""
    hidden = draw(st.permutations([1, 2, 3, 10, 11]))
    rows: dict[str, Row] = {}
    for at, main in enumerate(hidden):
        before = [id_ for id_ in rows if int(id_[5:].split(".")[0]) in hidden[:at]]
        deps = st.lists(st.sampled_from(before), max_size=2, unique=True).map(tuple) if before else st.just(())
        parts = draw(st.integers(0, 3))
        own = f"IMPL-{main}"
        status = S.CONTAINER if parts else draw(st.sampled_from([each for each in S if each is not S.CONTAINER]))
        rows[own] = Row(id=own, title=own, status=status, depends_on=draw(deps))
        for part in range(1, parts + 1):
            status = draw(st.sampled_from([S.PENDING, S.PENDING, S.ACTIVE, S.COMPLETED, S.BLOCKED, S.FAILED]))
            earlier = tuple(draw(st.lists(st.sampled_from(range(1, part)), max_size=1))) if part > 1 else ()
            named = (*draw(deps), *(f"{own}.{other}" for other in earlier))
            rows[f"{own}.{part}"] = Row(id=f"{own}.{part}", title="p", status=status, depends_on=named)
    return rows


class Model:
    def __init__(self, rows: dict[str, Row]) -> None:
        self.rows = rows

    def children(self, id_: str) -> list[str]:
        return sorted((other for other in self.rows if self.parent(other) == id_), key=number)

    def parent(self, id_: str) -> str | None:
        parent = number(id_).parent
        return str(parent) if parent else None

    def is_leaf(self, id_: str) -> bool:
        return not self.children(id_) and self.rows[id_].status is not S.CONTAINER

    def derived(self, id_: str) -> TaskStatus:
        states = [self.rows[child].status for child in self.children(id_)]
        if not states:
            return S.PENDING if self.rows[id_].status is S.CONTAINER else self.rows[id_].status
        if all(state is S.COMPLETED for state in states):
            return S.COMPLETED
        if S.FAILED in states:
            return S.FAILED
        if S.ACTIVE in states or S.COMPLETED in states:
            return S.ACTIVE
        return S.BLOCKED if set(states) == {S.BLOCKED} else S.PENDING

    def is_done(self, id_: str) -> bool:
        return id_ in self.rows and self.derived(id_) is S.COMPLETED

    def needs(self, id_: str) -> set[str]:
        parent = self.rows.get(self.parent(id_) or "")
        return {*self.rows[id_].depends_on, *(parent.depends_on if parent else ())}

    def unmet(self, id_: str) -> set[str]:
        return {other for other in self.needs(id_) if not self.is_done(other)}

    def pending_leaves(self) -> set[str]:
        return {id_ for id_, row in self.rows.items() if row.status is S.PENDING and self.is_leaf(id_)}

    def ready(self) -> set[str]:
        return {id_ for id_ in self.pending_leaves() if not self.unmet(id_)}

    def waiting(self) -> dict[str, set[str]]:
        return {id_: self.unmet(id_) for id_ in self.pending_leaves() if self.unmet(id_)}

    def order(self) -> list[str]:
        """Tasks without parts, the lowest that lacks nothing first. A container is over when its parts are."""
        over: list[str] = []

        left = [id_ for id_ in sorted(self.rows, key=number) if not self.children(id_)]
        while turn := next((id_ for id_ in left if id_ not in over and self._lacks_nothing(id_, over)), None):
            over.append(turn)
        return [id_ for id_ in over if self.is_leaf(id_)]

    def _lacks_nothing(self, id_: str, over: list[str]) -> bool:
        for other in self.needs(id_):
            wanted = self.children(other) or [other]
            if other in self.rows and any(each not in over for each in wanted):
                return False
        return True
