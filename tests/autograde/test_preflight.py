"""Whatever arrives becomes a notebook that is safe and fair to grade, or a sentence that says why.

Names such as H04 are rows of the corpus of hostile and broken submissions.
"""

import contextlib
import copy
import json
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat import NotebookNode

from autograde.master import cells_by_id, read_master
from autograde.preflight import (
    MAX_SOURCE,
    Prepared,
    Unreadable,
    as_notebook,
    belongs_to,
    preflight,
    read_submission,
)
from autograde.slim import MAX_FILE, without_outputs

MASTER = '''\
# %% [markdown]
# # A tiny level

# %%
import math

# %% [markdown]
# ## Surprise
# Write the surprise of a probability, in nats.

# %% answer="T_surprise"
def surprise(p):
    """The surprise of probability p, in nats."""
    ...  # YOUR CODE HERE

# %% test="T_surprise" points=2
assert surprise(1.0) == 0, "certainty has no surprise"

# %% [markdown]
# ## Two numbers

# %% answer="T_numbers"
loss_of_the_cat = ...  # YOUR CODE HERE
perplexity_of_the_cat = ...  # YOUR CODE HERE

# %% locked="T_show"
print("you answered", loss_of_the_cat)

# %% test="T_numbers" points=2
assert loss_of_the_cat > 0, "a loss is not negative"

# %% [markdown] written="T_words" points=1
# YOUR ANSWER HERE
'''
ANSWERS = {
    "T_surprise": 'def surprise(p):\n    """In nats, naïvely."""\n    return -math.log(p)',
    "T_numbers": "loss_of_the_cat = 1.04\nperplexity_of_the_cat = 2.83",
    "T_words": "Because a loss averages – and Größe matters.",
}
HELPER = "def helper(x):\n    return x"
ANSWERED = dict.fromkeys(ANSWERS, "answered")
Plain = dict[str, Any]


def make_release(master: str = MASTER) -> NotebookNode:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.py"
        path.write_text(master, "utf-8")
        return read_master(path)


RELEASE = make_release()
INSTRUCTORS = [cell for cell in RELEASE.cells if cell.id not in ANSWERS]


def submission(answers: dict[str, str] = ANSWERS) -> Plain:
    """A good submission as plain JSON, with outputs."""
    notebook: Plain = json.loads(nbformat.writes(RELEASE))
    for cell in notebook["cells"]:
        cell["source"] = answers.get(cell["id"], "".join(cell["source"]))
        if cell["cell_type"] == "code":
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["hi\n"]}]
            cell["execution_count"] = 3
    return notebook


def cell_of(notebook: Plain, name: str) -> Plain:
    return next(cell for cell in notebook["cells"] if cell.get("id") == name)


def code(source: str) -> Plain:
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": []}


def prepare(notebook: object, encoding: str = "utf-8") -> Prepared:
    return preflight(json.dumps(notebook, ensure_ascii=False, indent=1).encode(encoding), RELEASE)


def answers_in(prepared: Prepared) -> dict[str, str]:
    return {cell.name: cell.source for cell in prepared.cells if cell.origin == "answer"}


def kinds(prepared: Prepared) -> set[str]:
    return {note.kind for note in prepared.notes}


def order(prepared: Prepared) -> list[str]:
    return [cell.source if cell.origin == "extra" else cell.name for cell in prepared.cells]


def assert_instructors_cells_are_the_releases(prepared: Prepared) -> None:
    rebuilt = [cell for cell in prepared.cells if cell.origin == "release"]
    assert [cell.source for cell in rebuilt] == [cell.source for cell in INSTRUCTORS]
    assert [cell.metadata for cell in rebuilt] == [cell.metadata for cell in INSTRUCTORS]
    assert [cell.kind for cell in rebuilt] == [cell.cell_type for cell in INSTRUCTORS]
    for cell in (cell for cell in prepared.cells if cell.origin == "answer"):
        assert cell.metadata == cells_by_id(RELEASE)[cell.name].metadata


def assert_nothing_is_lost(prepared: Prepared) -> None:
    assert answers_in(prepared) == ANSWERS
    assert prepared.states == ANSWERED
    assert_instructors_cells_are_the_releases(prepared)


def test_a_good_submission_passes_without_a_note() -> None:
    prepared = prepare(submission())
    assert_nothing_is_lost(prepared)
    assert prepared.notes == ()
    assert order(prepared) == [cell.id for cell in RELEASE.cells]


def test_the_untouched_release_has_untouched_answers() -> None:
    prepared = preflight(nbformat.writes(RELEASE).encode(), RELEASE)
    assert set(prepared.states.values()) == {"untouched"}
    assert prepared.notes == ()


def test_white_space_alone_is_no_answer() -> None:
    stub = cells_by_id(RELEASE)["T_numbers"].source
    prepared = prepare(submission(ANSWERS | {"T_numbers": stub.replace(" ", "  ") + "\n\n"}))
    assert prepared.states == ANSWERED | {"T_numbers": "untouched"}


def test_a_prepared_notebook_is_a_valid_notebook() -> None:
    notebook = submission()
    notebook["cells"].insert(3, code(HELPER))
    made = as_notebook(prepare(notebook))
    nbformat.validate(made)
    assert [cell.id for cell in made.cells if cell.id in ANSWERS] == list(ANSWERS)


def test_preparing_leaves_the_release_as_it_was() -> None:
    before = copy.deepcopy(RELEASE)
    prepared = prepare(submission())
    prepared.cells[4].metadata["nbgrader"]["points"] = 500
    assert before == RELEASE


# ---- tampering: the instructor's cells come from the release


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"metadata": {"tags": ["skip-execution"]}}, id="T01 tag instead of metadata"),
        pytest.param({"source": "assert True"}, id="T23 test source edited"),
        pytest.param({"cell_type": "markdown"}, id="H08 test became markdown"),
        pytest.param({"cell_type": "raw"}, id="H08 test became raw"),
        pytest.param({"source": ""}, id="test emptied"),
    ],
)
def test_a_changed_test_cell_is_restored_and_told(change: Plain) -> None:
    notebook = submission()
    cell_of(notebook, "test_T_surprise").update(change)
    prepared = prepare(notebook)
    assert_nothing_is_lost(prepared)
    if "metadata" not in change:
        assert ("restored", "test_T_surprise") in {(n.kind, n.cell) for n in prepared.notes}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("points", 500),  # T22
        ("points", float("nan")),
        ("points", "HUGE"),
        ("schema_version", 99),  # D01
        ("schema_version", None),
        ("schema_version", {"a": [1]}),
        ("locked", False),
        ("solution", True),
        ("grade", False),
    ],
)
@pytest.mark.parametrize("name", ["test_T_surprise", "T_surprise", "T_show", "T_words"])
def test_edited_grading_metadata_change_nothing(name: str, key: str, value: object) -> None:
    notebook = submission()
    metadata = cell_of(notebook, name)["metadata"]["nbgrader"]
    same = key in metadata and metadata[key] == value
    metadata[key] = value
    text = json.dumps(notebook).replace('"HUGE"', "9" * 5000)
    prepared = preflight(text.encode(), RELEASE)
    assert_nothing_is_lost(prepared)
    assert (not same and key in cells_by_id(RELEASE)[name].metadata["nbgrader"]) == (
        ("restored", name) in {(note.kind, note.cell) for note in prepared.notes}
    )


def test_t01_a_skip_tag_beside_intact_metadata_is_told() -> None:
    notebook = submission()
    cell_of(notebook, "test_T_surprise")["metadata"]["tags"] = ["skip-execution"]
    prepared = prepare(notebook)
    assert_nothing_is_lost(prepared)
    assert [note.cell for note in prepared.notes] == ["test_T_surprise"]


def test_a_student_cell_never_takes_a_test_cells_place() -> None:
    notebook = submission()
    fake = copy.deepcopy(cell_of(notebook, "test_T_surprise"))
    fake["source"] = "raise SystemExit(0)"
    notebook["cells"].insert(0, fake)
    prepared = prepare(notebook)
    assert_nothing_is_lost(prepared)
    assert [cell.origin for cell in prepared.cells if cell.source == fake["source"]] == ["extra"]


def test_an_import_that_a_student_added_to_a_locked_cell_runs_before_the_original() -> None:
    notebook = submission()
    cell_of(notebook, "T_show")["source"] = "import numpy\nprint(loss_of_the_cat)"
    names = order(prepare(notebook))
    assert names.index("import numpy\nprint(loss_of_the_cat)") == names.index("T_show") - 1


# ---- cells copied, split, moved, deleted


def test_h04_of_copied_answers_the_last_that_says_something_counts() -> None:
    notebook = submission()
    first = cell_of(notebook, "T_surprise")
    better, stub, blank = (copy.deepcopy(first) for _ in range(3))
    better["source"] = "def surprise(p):\n    return math.log(1 / p)"
    stub["source"] = cells_by_id(RELEASE)["T_surprise"].source
    blank["source"] = "\n"
    notebook["cells"] += [better, stub, blank]
    prepared = prepare(notebook)
    assert answers_in(prepared)["T_surprise"] == better["source"]
    assert kinds(prepared) == {"duplicate"}
    assert_instructors_cells_are_the_releases(prepared)


def test_h04_a_copied_test_cell_is_there_once() -> None:
    notebook = submission()
    notebook["cells"].append(copy.deepcopy(cell_of(notebook, "test_T_surprise")))
    prepared = prepare(notebook)
    assert_nothing_is_lost(prepared)
    assert kinds(prepared) == {"duplicate"}


@pytest.mark.parametrize("keeps_metadata", [True, False])
@pytest.mark.parametrize("cut", [1, 2])
def test_h04_the_pieces_of_a_split_answer_are_all_run(cut: int, keeps_metadata: bool) -> None:
    notebook = submission()
    position = notebook["cells"].index(cell_of(notebook, "T_surprise"))
    head, tail = (copy.deepcopy(notebook["cells"][position]) for _ in range(2))
    lines = ANSWERS["T_surprise"].split("\n")
    head["source"], tail["source"] = "\n".join(lines[:cut]), "\n".join(lines[cut:])
    tail["id"] = "new"
    if not keeps_metadata:
        tail["metadata"] = {}
    notebook["cells"][position : position + 1] = [head, tail]
    prepared = prepare(notebook)
    assert_nothing_is_lost(prepared)
    assert kinds(prepared) == {"duplicate"}


@pytest.mark.parametrize("keeps_metadata", [True, False])
def test_h04_an_answer_split_between_two_names_keeps_both(keeps_metadata: bool) -> None:
    notebook = submission()
    position = notebook["cells"].index(cell_of(notebook, "T_numbers"))
    head, tail = (copy.deepcopy(notebook["cells"][position]) for _ in range(2))
    head["source"], tail["source"] = ANSWERS["T_numbers"].split("\n")
    tail["id"] = "new"
    if not keeps_metadata:
        tail["metadata"] = {}
    notebook["cells"][position : position + 1] = [head, tail]
    run = "\n".join(cell.source for cell in prepare(notebook).cells if cell.origin != "release")
    assert ANSWERS["T_numbers"] in run


def test_a_helper_cell_before_a_split_is_not_lost_with_it() -> None:
    notebook = submission()
    position = notebook["cells"].index(cell_of(notebook, "T_surprise"))
    helper = copy.deepcopy(notebook["cells"][position])
    helper["source"], helper["id"] = HELPER, "new"
    notebook["cells"].insert(position, helper)
    assert answers_in(prepare(notebook))["T_surprise"] == HELPER + "\n" + ANSWERS["T_surprise"]


def test_two_answers_merged_into_one_cell_are_both_found() -> None:
    notebook = submission()
    gone = cell_of(notebook, "T_numbers")
    notebook["cells"].remove(gone)
    cell_of(notebook, "T_surprise")["source"] += "\n" + gone["source"]
    prepared = prepare(notebook)
    assert prepared.states == ANSWERED
    assert answers_in(prepared)["T_numbers"] == ANSWERS["T_numbers"]
    assert kinds(prepared) == {"matched"}


def test_an_answer_written_below_its_cell_counts() -> None:
    notebook = submission({})
    below = {"T_surprise": code(ANSWERS["T_surprise"])}
    below["T_words"] = {"cell_type": "markdown", "metadata": {}, "source": ANSWERS["T_words"]}
    for name, cell in below.items():
        position = notebook["cells"].index(cell_of(notebook, name))
        notebook["cells"].insert(position + 1, cell)
    prepared = prepare(notebook)
    assert prepared.states == ANSWERED | {"T_numbers": "untouched"}
    assert answers_in(prepared)["T_words"] == ANSWERS["T_words"]


@pytest.mark.parametrize("name", ["test_T_surprise", "T_show"])
def test_h05_a_deleted_instructors_cell_is_put_back(name: str) -> None:
    notebook = submission()
    notebook["cells"].remove(cell_of(notebook, name))
    prepared = prepare(notebook)
    assert_nothing_is_lost(prepared)
    assert [(note.kind, note.cell) for note in prepared.notes] == [("restored", name)]


def test_h06_a_deleted_answer_is_missing_and_the_others_stand() -> None:
    notebook = submission()
    notebook["cells"].remove(cell_of(notebook, "T_surprise"))
    prepared = prepare(notebook)
    assert prepared.states == ANSWERED | {"T_surprise": "missing"}
    assert [note.message for note in prepared.notes] == ["No answer was found for T_surprise."]
    assert answers_in(prepared)["T_surprise"] == cells_by_id(RELEASE)["T_surprise"].source


@pytest.mark.parametrize(("name", "kind"), [("T_surprise", "raw"), ("T_words", "code")])
def test_h08_an_answer_whose_cell_type_changed_is_an_answer(name: str, kind: str) -> None:
    notebook = submission()
    cell_of(notebook, name)["cell_type"] = kind
    prepared = prepare(notebook)
    assert_nothing_is_lost(prepared)
    assert [(note.kind, note.cell) for note in prepared.notes] == [("restored", name)]


def test_own_code_stays_where_it_stood_and_own_text_is_dropped() -> None:
    notebook = submission()
    for name in ("test_T_surprise", "T_surprise", "code-001"):
        position = notebook["cells"].index(cell_of(notebook, name))
        notebook["cells"].insert(position + 1, code(f"after = {name!r}"))
    notebook["cells"].insert(0, code("first = 1"))
    notebook["cells"].insert(5, {"cell_type": "markdown", "metadata": {}, "source": "my notes"})
    names = order(prepare(notebook))
    assert names[0] == "first = 1"
    for name in ("test_T_surprise", "T_surprise", "code-001"):
        assert names[names.index(name) + 1] == f"after = {name!r}"
    assert "my notes" not in names


def test_a_helper_runs_before_the_answer_that_follows_it_though_answers_were_moved() -> None:
    notebook = submission()
    cells = notebook["cells"]
    position = cells.index(cell_of(notebook, "T_surprise"))
    surprise = cells.pop(position)
    cells += [code(HELPER), surprise]
    prepared = prepare(notebook)
    assert_nothing_is_lost(prepared)
    assert order(prepared).index(HELPER) < order(prepared).index("T_surprise")


# ---- metadata lost


def strip(notebook: Plain, *, ids: bool = True) -> Plain:
    """The notebook as a tool leaves it that keeps no metadata."""
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        if ids:
            cell.pop("id", None)
    return notebook


def test_h10_without_metadata_the_cell_ids_tell() -> None:
    notebook = strip(submission(), ids=False)
    notebook["cells"].reverse()
    prepared = prepare(notebook)
    assert_nothing_is_lost(prepared)
    assert {note.cell for note in prepared.notes if "cell id" in note.message} == set(ANSWERS)


def test_h10_of_two_answers_with_the_same_stub_the_place_tells_which_was_answered() -> None:
    second = '# %% [markdown]\n# ## More\n\n# %% [markdown] written="T_more" points=1\n'
    release = make_release(MASTER + "\n" + second + "# YOUR ANSWER HERE\n")
    notebook = strip(json.loads(nbformat.writes(release)))
    notebook["cells"][-1]["source"] = "more words"
    states = preflight(json.dumps(notebook).encode(), release).states
    assert (states["T_words"], states["T_more"]) == ("untouched", "answered")


def test_h10_without_metadata_and_ids_the_names_and_the_place_tell() -> None:
    notebook = strip(submission())
    notebook["cells"].insert(4, code("loss_of_the_cat = 3  # a try"))
    prepared = prepare(notebook)
    assert_nothing_is_lost(prepared)
    notes = {note.cell: note.message for note in prepared.notes if note.kind == "matched"}
    assert set(notes) == set(ANSWERS)
    assert "confidence" in notes["T_numbers"]
    assert "place" in notes["T_words"]
    assert "loss_of_the_cat = 3  # a try" in order(prepared)


def test_h10_a_syntax_error_hides_no_names() -> None:
    broken = "def surprise(p)\n    return 1"
    prepared = prepare(strip(submission(ANSWERS | {"T_surprise": broken})))
    assert answers_in(prepared)["T_surprise"] == broken


def test_h10_a_renamed_function_is_found_by_likeness() -> None:
    renamed = cells_by_id(RELEASE)["T_surprise"].source.replace("surprise(", "my_surprise(")
    notebook = strip(submission(ANSWERS | {"T_surprise": renamed}))
    random.Random(0).shuffle(notebook["cells"])
    assert answers_in(prepare(notebook))["T_surprise"] == renamed


def test_an_edited_grade_id_is_put_right_from_the_cell_id() -> None:
    notebook = submission()
    cell_of(notebook, "T_surprise")["metadata"]["nbgrader"]["grade_id"] = "T_other"
    assert_nothing_is_lost(prepare(notebook))


# ---- encodings and formats


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_h14_every_unicode_encoding_is_read_and_told(encoding: str) -> None:
    prepared = prepare(submission(), encoding)
    assert_nothing_is_lost(prepared)
    assert kinds(prepared) == {"encoding"}


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_h14_western_encodings_are_read_and_told(encoding: str) -> None:
    words = ANSWERS["T_words"] if encoding == "cp1252" else "Größe matters."
    prepared = prepare(submission(ANSWERS | {"T_words": words}), encoding)
    assert answers_in(prepared)["T_words"] == words
    assert kinds(prepared) == {"encoding"}


def test_one_bad_byte_does_not_garble_the_other_characters() -> None:
    data = json.dumps(submission(), ensure_ascii=False).encode()
    prepared = preflight(data.replace(b'"hi', b'"hi').replace("ï".encode(), b"\xc3", 1), RELEASE)
    assert answers_in(prepared)["T_words"] == ANSWERS["T_words"]
    assert kinds(prepared) == {"encoding"}


def old_format(version: int) -> Plain:
    """The submission in notebook format 1, 2 or 3."""
    cells = []
    for cell in submission()["cells"]:
        old = {"cell_type": cell["cell_type"], "metadata": cell["metadata"]}
        is_code = cell["cell_type"] == "code"
        key = ("code" if version == 1 else "input") if is_code else "source"
        if version == 1 and not is_code:
            old["cell_type"], key = "text", "text"
        lines = cell["source"].splitlines(keepends=True)
        old[key] = lines if version == 3 else cell["source"]
        cells.append(old)
    body: Plain = {"cells": cells} if version == 1 else {"worksheets": [{"cells": cells}]}
    return body | {"nbformat": version, "nbformat_minor": 0, "metadata": {"name": ""}}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_old_notebook_formats_are_read_and_told(version: int) -> None:
    prepared = prepare(old_format(version))
    assert_nothing_is_lost(prepared)
    assert kinds(prepared) == {"format"}


@pytest.mark.parametrize("keeps_metadata", [True, False])
def test_h12_a_colab_export_loses_nothing(keeps_metadata: bool) -> None:
    notebook = submission() if keeps_metadata else strip(submission(), ids=False)
    notebook["nbformat_minor"] = 0
    notebook["metadata"] = {"colab": {"provenance": []}, "kernelspec": {"name": "python3"}}
    for cell in notebook["cells"]:
        cell["metadata"]["id"] = cell.pop("id")
        cell["source"] = cell["source"].splitlines(keepends=True)
    prepared = prepare(notebook)
    assert_nothing_is_lost(prepared)
    assert all("cell id" in note.message for note in prepared.notes)
    assert bool(prepared.notes) != keeps_metadata


def test_lines_saved_without_their_line_breaks_are_lines() -> None:
    notebook = submission()
    cell_of(notebook, "T_surprise")["source"] = ANSWERS["T_surprise"].split("\n")
    assert_nothing_is_lost(prepare(notebook))


def test_a_vs_code_export_loses_nothing() -> None:
    notebook = submission()
    for cell in notebook["cells"]:
        cell.pop("execution_count", None)
        cell["metadata"]["vscode"] = {"languageId": "python"}
    notebook["metadata"] = {}  # H11: no kernelspec
    notebook["nbformat_minor"] = 2
    assert_nothing_is_lost(prepare(notebook))


def test_h32_cells_of_another_version_of_the_assignment_are_left_aside() -> None:
    notebook = submission()
    for cell in notebook["cells"]:
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["schema_version"] = 1
    old = copy.deepcopy(cell_of(notebook, "test_T_surprise"))
    old["id"] = old["metadata"]["nbgrader"]["grade_id"] = "test_T_gone"
    old["source"] = "assert gone"
    notebook["cells"].append(old)
    prepared = prepare(notebook)
    assert_nothing_is_lost(prepared)
    assert kinds(prepared) == {"restored"}


# ---- damage


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b" \n\n", id="blank"),
        pytest.param(b"\xef\xbb\xbf", id="byte order mark alone"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[]", id="list"),
        pytest.param(b"{}", id="no cells"),
        pytest.param(b'{"cells": []}', id="empty notebook"),
        pytest.param(b'{"cells": 7, "worksheets": [null, {"cells": {}}]}', id="no list of cells"),
        pytest.param(b'{"cells": [{"cell_type": "code", "sour', id="cut in the first cell"),
        pytest.param(b"PK\x03\x04 zip", id="zip"),
        pytest.param(b"<!DOCTYPE html><p>my notebook", id="web page"),
        pytest.param(b"Dear teacher, my dog ate it.", id="words"),
        pytest.param(bytes(range(256)) * 40, id="binary"),
        pytest.param(b"\0" * 5000, id="zeros"),
        pytest.param(json.dumps({"cells": [code("print(1)")]}).encode(), id="another notebook"),
    ],
)
def test_h15_what_holds_nothing_to_grade_ends_in_one_sentence(data: bytes) -> None:
    with pytest.raises(Unreadable) as refused:
        preflight(data, RELEASE)
    assert str(refused.value).endswith(".")
    assert "hand" in str(refused.value)


def test_h15_the_whole_cells_of_a_cut_off_file_are_graded() -> None:
    data = json.dumps(submission(), indent=1).encode()
    prepared = preflight(data[: data.index(b"T_numbers")], RELEASE)
    assert prepared.states == {
        "T_surprise": "answered",
        "T_numbers": "missing",
        "T_words": "missing",
    }
    assert "damaged" in kinds(prepared)
    assert_instructors_cells_are_the_releases(prepared)


def test_a_damaged_spot_costs_only_its_own_cell() -> None:
    data = json.dumps(submission(), indent=1).encode()
    prepared = preflight(data.replace(b'"id": "code-001"', b'"id": code-001"'), RELEASE)
    assert prepared.states == ANSWERED


def test_trailing_commas_and_raw_line_breaks_are_no_loss() -> None:
    data = json.dumps(submission(), indent=1).replace('],\n "metadata"', '],,\n "metadata"')
    assert preflight(data.encode(), RELEASE).states == ANSWERED
    raw = json.dumps(submission()).replace("\\n", "\n").encode()
    assert_nothing_is_lost(preflight(raw, RELEASE))


@pytest.mark.parametrize("base", ["", '||||||| base\n   "execution_count": 0,\n'])
def test_h15_a_merge_conflict_is_read_as_our_side(base: str) -> None:
    text = json.dumps(submission(), indent=1, ensure_ascii=False)
    line = '   "execution_count": 3,\n'
    conflict = f'<<<<<<< HEAD\n{line}{base}=======\n   "execution_count": 9,\n>>>>>>> other\n'
    prepared = preflight(text.replace(line, conflict).encode(), RELEASE)
    assert_nothing_is_lost(prepared)
    assert kinds(prepared) == {"conflict"}


def test_h15_if_only_their_side_of_a_conflict_is_whole_it_is_taken() -> None:
    text = json.dumps(submission(), indent=1, ensure_ascii=False)
    line = '   "execution_count": 3,\n'
    prepared = preflight(
        text.replace(line, f"<<<<<<< a\n[[[\n=======\n{line}>>>>>>> b\n").encode(), RELEASE
    )
    assert_nothing_is_lost(prepared)


def test_h15_a_python_file_is_aligned_by_the_names_it_defines() -> None:
    script = "import math\n\n" + "\n\n".join(list(ANSWERS.values())[:2])
    prepared = preflight(script.encode(), RELEASE)
    assert prepared.states == ANSWERED | {"T_words": "missing"}
    assert ANSWERS["T_surprise"] in answers_in(prepared)["T_surprise"]
    assert answers_in(prepared)["T_numbers"] == ANSWERS["T_numbers"]
    assert {"format", "matched", "missing"} <= kinds(prepared)


def test_h15_a_percent_script_is_read_cell_by_cell() -> None:
    parts = []
    for cell in submission()["cells"]:
        if cell["cell_type"] == "code":
            parts.append("# %%\n" + cell["source"])
        else:
            body = "\n".join(f"# {line}" for line in cell["source"].split("\n"))
            parts.append("# %% [markdown]\n" + body)
    assert_nothing_is_lost(preflight("\n\n".join(parts).encode(), RELEASE))


@pytest.mark.parametrize(
    "wrong",
    [None, 3, "x", [], {}, [[1]], {"a": None}, True, float("nan"), "\ud800", "\0"],
    ids=repr,
)
@pytest.mark.parametrize("key", ["cell_type", "source", "metadata", "id", "outputs", "nbgrader"])
def test_a_wrong_type_costs_at_most_its_own_cell(key: str, wrong: object) -> None:
    notebook = submission()
    cell = cell_of(notebook, "T_surprise")
    (cell["metadata"] if key == "nbgrader" else cell)[key] = wrong
    notebook["cells"] += [wrong, {}]
    prepared = preflight(json.dumps(notebook).encode(), RELEASE)
    assert prepared.states == ANSWERED or key == "source"
    assert {**answers_in(prepared), "T_surprise": ""} == {**ANSWERS, "T_surprise": ""}


def test_characters_that_no_file_can_hold_do_not_reach_the_grader() -> None:
    text = json.dumps(submission(ANSWERS | {"T_words": "a\ud800b\0c\x1b[1m"}))
    words = answers_in(preflight(text.encode(), RELEASE))["T_words"]
    assert words == "a\ufffdbc\x1b[1m"
    words.encode("utf-8")


# ---- size


def test_h17_giant_outputs_are_cut_while_reading(tmp_path: Path) -> None:
    notebook = submission()
    cell_of(notebook, "T_surprise")["outputs"] = ["IMAGE"]
    cell_of(notebook, "T_words")["attachments"] = {"a.png": {"image/png": "IMAGE"}}
    notebook["metadata"]["widgets"] = {"state": ["IMAGE"] * 2}  # D14
    size = 50_000_000
    path = tmp_path / "level.ipynb"
    path.write_bytes(
        json.dumps(notebook, ensure_ascii=False).encode().replace(b"IMAGE", b"A" * size)
    )
    data = read_submission(path)
    assert len(data) < 10_000
    assert_nothing_is_lost(preflight(data, RELEASE))
    assert_nothing_is_lost(preflight(path.read_bytes(), RELEASE))


def test_a_large_file_with_a_conflict_or_in_utf_16_is_read_too(tmp_path: Path) -> None:
    notebook = submission()
    cell_of(notebook, "T_surprise")["outputs"] = ["A" * 6_000_000]
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    line = '   "execution_count": 3,\n'
    for data in (
        text.encode("utf-16"),
        text.replace(line, f"<<<<<<< a\n{line}=======\n{line}>>>>>>> b\n").encode(),
    ):
        (tmp_path / "level.ipynb").write_bytes(data)
        assert_nothing_is_lost(preflight(read_submission(tmp_path / "level.ipynb"), RELEASE))


def test_d15_a_file_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "level.ipynb"
    with path.open("wb") as file:
        file.truncate(MAX_FILE + 1)  # a hole: it takes no disk
    started = time.monotonic()
    with pytest.raises(Unreadable, match="MB"):
        read_submission(path)
    assert time.monotonic() - started < 0.5


def test_what_is_not_a_plain_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"{}")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert read_submission(tmp_path / "real") == b"{}"
    for name in ("link", "folder", "pipe", "nothing"):
        with pytest.raises(Unreadable):
            read_submission(tmp_path / name)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [500, 5_000, 100_000])
def test_d15_depth_in_outputs_costs_nothing(depth: int) -> None:
    text = json.dumps(submission()).replace('["hi\\n"]', nested(depth))
    assert_nothing_is_lost(preflight(text.encode(), RELEASE))


def test_d15_depth_elsewhere_costs_its_own_cell() -> None:
    text = json.dumps(submission()).replace('"id": "T_surprise"', f'"id": {nested(5_000)}')
    assert prepare(json.loads(json.dumps(submission()))).states == ANSWERED
    assert preflight(text.encode(), RELEASE).states == ANSWERED | {"T_surprise": "missing"}


def test_d15_of_very_many_cells_the_first_are_read() -> None:
    notebook = submission()
    notebook["cells"] += [code("x = 1")] * 50_000
    prepared = prepare(notebook)
    assert_nothing_is_lost(prepared)
    assert len(prepared.cells) < 2_100
    assert kinds(prepared) == {"limit"}


def test_an_answer_of_a_megabyte_is_left_out_and_told() -> None:
    notebook = submission(ANSWERS | {"T_surprise": "x = 1\n" * MAX_SOURCE})
    notebook["cells"].append(code("y = 1\n" * MAX_SOURCE))
    prepared = prepare(notebook)
    assert prepared.states == ANSWERED | {"T_surprise": "untouched"}
    assert [note.kind for note in prepared.notes] == ["limit", "limit"]


HOSTILE: dict[str, Callable[[], bytes]] = {
    "open brackets": lambda: b"[" * 5_000_000,
    "open objects": lambda: b'{"cells":[' * 500_000,
    "brackets in outputs": lambda: b'{"cells":[{"outputs":' + b"[]," * 3_000_000,
    "a string without an end": lambda: b'{"cells": ["' + b'\\"' * 3_000_000,
    "outputs without an end": lambda: b'{"outputs": [' + b'"\\"' * 2_000_000,
    "beginnings of cells": lambda: b'{"cells":[' + b'{"cell_type":' * 400_000,
    "beginnings of strings": lambda: b'{"cells":[' + b'{"cell_type":"\\"' * 300_000,
    "conflict markers": lambda: b"<<<<<<< \n" * 500_000 + b">>>>>>> \n" * 100_000,
    "cell marks": lambda: b"# %%\n" * 800_000,
    "definitions": lambda: b"surprise=\n" * 700_000,
    "names": lambda: b"a," * 3_000_000,
    "white space": lambda: b" " * 8_000_000,
    "keys": lambda: b'{"outputs":1,' * 600_000,
    "many alike": lambda: json.dumps(
        {"cells": [code("def surprise(p):\n" + "    x = 1\n" * 200)] * 2_000}
    ).encode(),
    "many strange": lambda: json.dumps(
        {"cells": [*submission({})["cells"], *[code("x(1)\n" * 700)] * 1_900]}
    ).encode(),
    "many words": lambda: json.dumps(
        {"cells": [code(" ".join(["surprise = 1"] * 300))] * 1_900}
    ).encode(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_in_seconds(name: str) -> None:
    data = HOSTILE[name]()
    started = time.process_time()
    with contextlib.suppress(Unreadable):
        preflight(data, RELEASE)
    assert time.process_time() - started < 10


# ---- which assignment


def test_h09_a_renamed_file_is_known_by_what_is_in_it() -> None:
    other = copy.deepcopy(RELEASE)
    for cell in other.cells:
        cell.source = cell.source.replace("surprise", "other").replace("of_the_cat", "_b")
        if "nbgrader" in cell.metadata:
            cell.id = cell.metadata.nbgrader.grade_id = "other_" + cell.metadata.nbgrader.grade_id
    releases = {"level1": other, "level2": RELEASE}
    assert belongs_to(json.dumps(submission()).encode(), releases) == "level2"
    assert belongs_to(nbformat.writes(other).encode(), releases) == "level1"
    assert belongs_to(json.dumps(strip(submission())).encode(), releases) == "level2"
    assert belongs_to(ANSWERS["T_surprise"].encode(), releases) == "level2"
    assert belongs_to(b"print('hello')", releases) is None
    assert belongs_to(b"", releases) is None
    assert belongs_to(json.dumps(submission()).encode(), {"a": RELEASE, "b": RELEASE}) is None


# ---- properties


def shuffle(notebook: Plain, rng: random.Random) -> None:
    cells = notebook["cells"]
    movable = [n for n, cell in enumerate(cells) if cell.get("id") not in ANSWERS]
    moved = rng.sample(movable, len(movable))
    notebook["cells"] = [
        cells[moved[movable.index(n)]] if n in movable else cells[n] for n in range(len(cells))
    ]


def duplicate_prose(notebook: Plain, rng: random.Random) -> None:
    prose = [c for c in notebook["cells"] if str(c.get("id")).startswith("markdown")]
    notebook["cells"].insert(
        rng.randrange(len(notebook["cells"])), copy.deepcopy(rng.choice(prose))
    )


def change_outputs(notebook: Plain, rng: random.Random) -> None:
    for cell in notebook["cells"]:
        cell["outputs"] = rng.choice([None, [], {"x": ['"outputs": [']}, "text", [[[]]]])


def drop_metadata(notebook: Plain, rng: random.Random) -> None:
    for cell in rng.sample(notebook["cells"], rng.randrange(len(notebook["cells"]))):
        cell["metadata"] = {}


def add_own_cells(notebook: Plain, rng: random.Random) -> None:
    notebook["cells"].insert(rng.randrange(len(notebook["cells"])), code(HELPER))


def no_change(notebook: Plain, rng: random.Random) -> None:
    pass


HONEST = [shuffle, duplicate_prose, change_outputs, drop_metadata, add_own_cells]


@settings(max_examples=150, deadline=None)
@given(
    changes=st.lists(st.sampled_from(HONEST), max_size=5),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"]),
    seed=st.integers(0, 10**6),
)
def test_honest_accidents_never_lose_an_answer(
    changes: list[Callable[[Plain, random.Random], None]], encoding: str, seed: int
) -> None:
    notebook, rng = submission(), random.Random(seed)
    for change in changes:
        change(notebook, rng)
    assert_nothing_is_lost(prepare(notebook, encoding))


@settings(max_examples=100, deadline=None)
@given(
    changes=st.lists(st.sampled_from([duplicate_prose, change_outputs, add_own_cells]), max_size=4),
    seed=st.integers(0, 10**6),
)
def test_without_metadata_and_ids_in_order_no_answer_is_lost(
    changes: list[Callable[[Plain, random.Random], None]], seed: int
) -> None:
    notebook, rng = submission(), random.Random(seed)
    for change in changes:
        change(notebook, rng)
    assert_nothing_is_lost(prepare(strip(notebook)))


VALUES: list[Any] = [
    None,
    True,
    -1,
    1e308,
    "",
    "x",
    [],
    {},
    [[]],
    {"cells": []},
    "\ud800",
    "T_words",
]


def mutate(value: Any, rng: random.Random) -> Any:
    """The JSON value with one node deleted, doubled, retyped or moved, somewhere."""
    if isinstance(value, (dict, list)) and value and rng.random() < 0.9:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = rng.choice(keys)
        action = rng.randrange(8)
        if action == 0:
            del value[key]
        elif action == 1 and isinstance(value, list):
            value.insert(rng.randrange(len(value) + 1), copy.deepcopy(value[key]))
        elif action == 2:
            other = rng.choice(keys)
            value[key], value[other] = value[other], value[key]
        elif action == 3 and isinstance(value, list):
            return {str(n): item for n, item in enumerate(value)}
        else:
            value[key] = mutate(value[key], rng)
        return value
    return copy.deepcopy(rng.choice(VALUES))


def ends_well(data: bytes) -> None:
    started = time.process_time()
    try:
        prepared = preflight(data, RELEASE)
    except Unreadable:
        return
    finally:
        assert time.process_time() - started < 5
    assert_instructors_cells_are_the_releases(prepared)
    assert set(prepared.states) == set(ANSWERS)
    nbformat.validate(as_notebook(prepared))


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**9), times=st.integers(1, 12))
def test_any_mutation_of_the_json_ends_well(seed: int, times: int) -> None:
    notebook, rng = submission(), random.Random(seed)
    for _ in range(times):
        notebook = mutate(notebook, rng)
    ends_well(json.dumps(notebook).encode())


@settings(max_examples=150, deadline=None)
@given(offset=st.integers(0, 5_000), encoding=st.sampled_from(["utf-8", "utf-16"]))
def test_a_file_cut_anywhere_ends_well(offset: int, encoding: str) -> None:
    ends_well(json.dumps(submission(), indent=1, ensure_ascii=False).encode(encoding)[:offset])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 255)), min_size=1, max_size=30))
def test_flipped_bytes_end_well(flips: list[tuple[int, int]]) -> None:
    data = bytearray(json.dumps(submission(), indent=1, ensure_ascii=False).encode())
    for position, byte in flips:
        data[position % len(data)] = byte
    ends_well(bytes(data))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400))
def test_random_bytes_end_well(data: bytes) -> None:
    ends_well(data)
    ends_well(b'{"cells": [' + data)


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda x: (
            st.lists(x)
            | st.dictionaries(st.sampled_from(["outputs", "source", "attachments", "a"]), x)
        ),
    )
)
def test_cutting_outputs_leaves_everything_else(value: Any) -> None:
    def cut(node: Any) -> Any:
        if isinstance(node, dict):
            gone = ("outputs", "attachments", "widgets")
            return {key: None if key in gone else cut(item) for key, item in node.items()}
        return [cut(item) for item in node] if isinstance(node, list) else node

    assert json.loads(without_outputs(json.dumps(value).encode())) == cut(value)
