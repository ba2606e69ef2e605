"""One submission → one verdict: a pure function of its bytes and the assignment.

Student code runs in processes that share nothing with the verdict (`kernel.py`); test cells run
here (`judge.py`). A process that dies or hangs costs the answer that did it: a fresh one replays
the cells that went well, and grading goes on.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nbformat import NotebookNode

from autograde.assignment import Assignment
from autograde.judge import Ruling, judge
from autograde.kernel import CannotStart, Died, Failure, Kernel, Nursery
from autograde.limits import Limits
from autograde.master import Item, cells_by_id, items, secret_lines
from autograde.notebook import node
from autograde.outputs import inert
from autograde.preflight import Prepared, PreparedCell, Unreadable, as_notebook, preflight
from autograde.verdict import ItemResult, Outcome, Verdict, one_line


@dataclass(frozen=True)
class Graded:
    """A verdict, and the notebook that it is about as it ran: for feedback, never for the score.

    `settled` unless the grader itself failed: another try would end the same way.
    """

    verdict: Verdict
    notebook: NotebookNode | None = None
    settled: bool = True


def grade(
    data: bytes,
    assignment: Assignment,
    nursery: Nursery,
    *,
    student: str = "",
    limits: Limits | None = None,
    notes: Sequence[str] = (),
) -> Graded:
    """Grade one submission; whatever is wrong with it ends as a verdict with a reason.

    `notes` are put before the verdict's own. Raises CannotStart; a fault of the grader's own is a
    reason too, so that the class goes on and a person looks.
    """
    try:
        return _grade(data, assignment, nursery, student, limits or Limits(), notes)
    except Unreadable as error:
        reason, settled = str(error), True
    except CannotStart:
        raise
    except Exception as error:
        reason = f"the grader failed, please report it: {type(error).__name__}: {error}"
        settled = False
    return Graded(Verdict(student, assignment.level, reason=one_line(reason)), settled=settled)


def _grade(
    data: bytes,
    assignment: Assignment,
    nursery: Nursery,
    student: str,
    limits: Limits,
    notes: Sequence[str],
) -> Graded:
    started = time.monotonic()
    prepared = preflight(data, assignment.release)
    run = _Run(assignment, nursery, limits)
    try:
        run.all(prepared)
    finally:
        run.close()
    verdict = Verdict(
        student,
        assignment.level,
        tuple(run.result(item, prepared) for item in items(assignment.source)),
        notes=(*notes, *(note.message for note in prepared.notes)),
        confined=nursery.confined,
        seconds=round(time.monotonic() - started, 3),
    )
    return Graded(verdict, run.notebook(prepared))


@dataclass
class _Trouble:
    """What went wrong while an answer cell ran."""

    outcome: Outcome
    message: str


@dataclass
class _Run:
    """The cells of one notebook in order, in as many student processes as it takes."""

    assignment: Assignment
    nursery: Nursery
    limits: Limits
    replay: list[str] = field(default_factory=list)  # what a fresh process must run again
    rulings: dict[str, Ruling] = field(default_factory=dict)  # by the test's grade_id
    troubles: dict[str, _Trouble] = field(default_factory=dict)  # by the cell's name
    outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    kernel: Kernel | None = None

    def all(self, prepared: Prepared) -> None:
        self.deadline = time.monotonic() + self.limits.notebook_wall_s
        self.room = self.limits.notebook_output
        tests = self.assignment.tests
        for cell in prepared.cells:
            if cell.kind != "code":
                continue
            if cell.origin == "release" and cell.name in tests:
                self.rulings[cell.name] = self.test(tests[cell.name])
            else:
                self.cell(cell)

    def test(self, source: str) -> Ruling:
        if time.monotonic() > self.deadline:
            return Ruling(Outcome.TIMED_OUT, "The notebook had used up its time before this test.")
        try:
            return judge(source, self.alive())
        except Died as death:
            return Ruling(Outcome(death.cause), f"While this was tested, {death}.")

    def cell(self, cell: PreparedCell) -> None:
        """Run a cell of the student's or the instructor's; remember what became of it."""
        if time.monotonic() > self.deadline:
            self.troubles[cell.name] = _Trouble(
                Outcome.TIMED_OUT, "The notebook had used up its time before this cell."
            )
            return
        try:
            ran = self.alive().run(cell.source)
        except Died as death:
            self.troubles[cell.name] = _Trouble(Outcome(death.cause), f"In this cell {death}.")
            return
        self.room -= min(ran.size, self.limits.output)
        if self.room > 0:
            self.outputs[cell.name] = ran.outputs
        if ran.interrupted:
            self.troubles[cell.name] = _Trouble(
                Outcome.TIMED_OUT, f"The cell took longer than {self.limits.cpu_s:g} s."
            )
            return
        self.replay.append(cell.source)
        if ran.failure:
            self.troubles[cell.name] = _of_failure(ran.failure)

    def alive(self) -> Kernel:
        """A process that has run what went well so far. Raises `Died` if even that fails."""
        if self.kernel is None or self.kernel.dead:
            self.kernel = self.nursery.fork(self.limits)
            self.kernel.deadline = self.deadline
            for source in self.replay:
                self.kernel.run(source)
        return self.kernel

    def close(self) -> None:
        if self.kernel is not None:
            self.kernel.close()

    def result(self, item: Item, prepared: Prepared) -> ItemResult:
        """What an item's test, or failing that its answer cell, says about it."""
        untouched = prepared.states[item.answer] != "answered"
        trouble = self.troubles.get(item.answer)

        def result(
            outcome: Outcome, points: float | None, message: str = "", misconception: str = ""
        ) -> ItemResult:
            text = one_line(message)
            return ItemResult(item.name, outcome, points, item.points, text, misconception)

        if item.by_hand:
            if untouched:
                return result(Outcome.NOT_ATTEMPTED, 0)
            return result(Outcome.NEEDS_PERSON, None)
        ruling = self.rulings[item.graded]
        if ruling.outcome == Outcome.CORRECT:
            return result(Outcome.CORRECT, item.points)
        if untouched:
            return result(Outcome.NOT_ATTEMPTED, 0)
        if trouble and ruling.outcome == Outcome.ERROR:  # most likely the cause of it
            return result(trouble.outcome, 0, trouble.message)
        return result(ruling.outcome, 0, ruling.message, ruling.misconception)

    def notebook(self, prepared: Prepared) -> NotebookNode:
        """The prepared notebook with what its cells put out, and mark schemes for who marks it."""
        notebook = as_notebook(prepared)
        notebook.metadata["autograde"] = {"confined": self.nursery.confined}
        source, cells = cells_by_id(self.assignment.source), []
        for cell, given in zip(notebook.cells, prepared.cells, strict=True):
            if given.kind == "markdown" and given.origin == "answer":
                cell.source = inert(cell.source)
                cells += _mark_scheme(source[given.name])
            elif given.kind == "code":
                cell.outputs = [node(output) for output in self.outputs.get(cell.id, [])]
            cells.append(cell)
        notebook.cells = cells
        return notebook


def _mark_scheme(cell: NotebookNode) -> list[NotebookNode]:
    """The mark scheme of a written answer, as a cell to put above it; none if there is none."""
    scheme, _ = secret_lines(cell.source, ("MARK SCHEME",))
    if not scheme:
        return []
    text = "\n".join(["**Mark scheme** (not shown to students)", "", *scheme])
    cell_id, kind = f"scheme-{cell.id}", "markdown"
    return [node({"cell_type": kind, "id": cell_id, "metadata": {}, "source": text})]


def _of_failure(failure: Failure) -> _Trouble:
    if failure.type == "MemoryError":
        return _Trouble(Outcome.OUT_OF_MEMORY, "The cell asked for more memory than there is.")
    return _Trouble(Outcome.ERROR, failure.sentence)
