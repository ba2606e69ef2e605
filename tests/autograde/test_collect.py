"""`autograde collect`: whose file is whose, when it was handed in, and nothing lost or believed."""

import contextlib
import io
import stat
import struct
import zipfile
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_course import autograde, make_course
from zips import canvas, entry, gradescope, make_zip, moodle, notebook

from autograde import archive
from autograde.collect import Collected, open_batch
from autograde.course import Course, CourseError, is_storable
from autograde.identity import origins, student_id
from autograde.placing import State
from autograde.roster import read_roster

TAKEN, REPLACED, UNCHANGED, PASSED_OVER = State


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return make_course(tmp_path / "course")


def collect(course: Course, path: Path, roster: Path | None = None, force: bool = False):
    """What became of everything in a ZIP."""
    listed = read_roster(roster) if roster else None
    with open_batch(course, "tiny", path, listed, force) as batch:
        collected = list(batch)
        assert len(collected) == len(batch)
    assert not list(course.classroom.glob(".collect-*"))
    return collected


def submitted(course: Course) -> dict[str, str]:
    """What lies in classroom/submitted/, by student."""
    found = course.folder("submitted").glob("*/tiny/tiny.ipynb")
    return {path.parent.parent.name: path.read_text() for path in found}


def timestamps(course: Course) -> dict[str, str]:
    found = course.folder("submitted").glob("*/tiny/timestamp.txt")
    return {path.parent.parent.name: path.read_text() for path in found}


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, with its contents."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# --- whose, and when ------------------------------------------------------------------------------


def test_canvas_names_say_who_and_its_late_sign_gives_the_only_time(course, tmp_path):
    path = make_zip(
        tmp_path / "z.zip",
        {
            canvas(11, 501, "lovelaceada"): notebook("ada"),
            canvas(12, 502, "müllerbo", late=True, rest="tiny-1.ipynb"): notebook("bo"),
            "anon_ab12C_503_tiny.ipynb": notebook("somebody"),
        },
    )
    assert {one.state for one in collect(course, path)} == {TAKEN}
    assert submitted(course) == {
        "lovelaceada_11": notebook("ada"),
        "müllerbo_12": notebook("bo"),
        "anon_ab12C": notebook("somebody"),
    }
    assert timestamps(course) == {"müllerbo_12": "2026-12-05 10:00:00.000000 UTC"}
    assert origins(course, "tiny")["müllerbo_12"].person.id == "12"


def test_a_canvas_name_that_the_student_chose_can_not_name_somebody_else(course, tmp_path):
    rest = "x_LATE_99_100_lovelaceada_11_7_tiny.ipynb"
    path = make_zip(
        tmp_path / "z.zip",
        {
            canvas(66, 501, "mallory", rest=rest): notebook("mallory"),
            "anon_zz9_502_7_8_tiny.ipynb": notebook("hidden"),
        },
    )
    collect(course, path)
    assert submitted(course) == {"mallory_66": notebook("mallory"), "anon_zz9": notebook("hidden")}
    assert timestamps(course) == {}


@pytest.mark.parametrize("flat", [False, True])
def test_moodle_folders_say_who_also_where_a_student_imitates_one(course, tmp_path, flat):
    trap = f"Ada Lovelace_1_assignsubmission_file_{'' if flat else '/'}tiny.ipynb"
    names = [moodle(1, "Ada Lovelace"), moodle(2, "Bo, O'Neil"), moodle(3, "Mallory", trap)]
    names = [name.replace("_/", "_", 1) if flat else name for name in names]
    path = make_zip(tmp_path / "z.zip", dict(zip(names, map(notebook, "abm"), strict=True)))
    assert {one.state for one in collect(course, path)} == {TAKEN}
    expected = {"Ada Lovelace": "a", "Bo, O'Neil": "b", "Mallory": "m"}
    assert submitted(course) == {who: notebook(what) for who, what in expected.items()}
    assert timestamps(course) == {}  # a ZIP of Moodle's has the time of the download


def test_two_people_of_one_name_are_told_apart_by_the_number_and_stay_so(course, tmp_path):
    both = {moodle(8, "Eva Mai"): notebook("8"), moodle(9, "eva mai"): notebook("9")}
    collect(course, make_zip(tmp_path / "z.zip", both))
    expected = {"Eva Mai_8": notebook("8"), "eva mai_9": notebook("9")}
    assert submitted(course) == expected
    again = make_zip(tmp_path / "y.zip", {moodle(9, "eva mai"): notebook("9")})
    assert [one.state for one in collect(course, again)] == [UNCHANGED]
    assert submitted(course) == expected


def test_a_later_namesake_does_not_touch_who_was_there_first(course, tmp_path):
    collect(course, make_zip(tmp_path / "z.zip", {moodle(8, "Eva Mai"): notebook("8")}))
    collect(course, make_zip(tmp_path / "y.zip", {moodle(9, "Eva Mai"): notebook("9")}))
    assert submitted(course) == {"Eva Mai": notebook("8"), "Eva Mai_9": notebook("9")}


def test_gradescope_says_who_and_when_and_a_group_hands_in_for_each(course, tmp_path):
    about = gradescope(
        (7, [("Ada", "11", "ada@x.org")], "2026-12-01 17:34:00.861687000 Z"),
        (8, [("Bo", "", "bo@x.org"), ("Cy", "13", "cy@x.org")], "2026-12-02 01:00:00 -08:00"),
    )
    top = "assignment_3_export/"
    path = make_zip(
        tmp_path / "z.zip",
        {
            f"{top}submission_7/tiny.ipynb": notebook("ada"),
            f"{top}submission_metadata.yml": about,
            f"{top}submission_8/tiny.ipynb": notebook("two"),
        },
    )
    collect(course, path)
    assert submitted(course) == {
        "11": notebook("ada"),
        "bo@x.org": notebook("two"),
        "13": notebook("two"),
    }
    assert timestamps(course) == {
        "11": "2026-12-01 17:34:00.861687 UTC",
        "bo@x.org": "2026-12-02 09:00:00.000000 UTC",
        "13": "2026-12-02 09:00:00.000000 UTC",
    }


@pytest.mark.parametrize("mallory", ["mallory", "assignment_1_export"])
def test_a_students_file_can_not_pass_for_gradescopes(course, tmp_path, mallory):
    about = gradescope((7, [("Ada", "ada", "")], "2020-01-01 00:00:00 Z"))
    path = make_zip(
        tmp_path / "z.zip",
        {
            "ada/tiny.ipynb": notebook("ada"),
            f"{mallory}/submission_metadata.yml": about,
            f"{mallory}/submission_7/tiny.ipynb": notebook("mallory"),
        },
    )
    collect(course, path)
    assert submitted(course) == {"ada": notebook("ada"), mallory: notebook("mallory")}


def test_people_whom_even_their_numbers_do_not_tell_apart_are_passed_over(course, tmp_path):
    people = [("A", "a?", ""), ("B", "a*", ""), ("C", "c", "")]
    about = gradescope(*((7 + n, [who], "2026-12-01 00:00:00 Z") for n, who in enumerate(people)))
    names = {f"submission_{7 + n}/tiny.ipynb": notebook(who[0]) for n, who in enumerate(people)}
    path = make_zip(tmp_path / "z.zip", {"submission_metadata.yml": about} | names)
    assert [one.state for one in collect(course, path)] == [PASSED_OVER, PASSED_OVER, TAKEN]
    assert submitted(course) == {"c": notebook("C")}


@pytest.mark.parametrize(
    "layout",
    [
        "{}/tiny.ipynb",
        "{}/tiny/tiny.ipynb",
        "submitted/{}/tiny/tiny.ipynb",
        "a/b/{}/x.ipynb",
        "{}\\tiny.ipynb",
    ],
)
@pytest.mark.parametrize("students", [["ada", "bo"], ["ada"]])
def test_folders_say_who_and_their_files_when(course, tmp_path, layout, students):
    if layout.startswith("a/b") and len(students) == 1:
        students = ["ada", "bo"]
    names = {layout.format(who): notebook(who) for who in students}
    collect(course, make_zip(tmp_path / "z.zip", names | {"__MACOSX/ada/._tiny.ipynb": "x"}))
    assert submitted(course) == {who: notebook(who) for who in students}
    assert timestamps(course) == dict.fromkeys(students, "2026-12-05 10:00:00.000000 UTC")


def test_the_time_in_seconds_since_1970_counts_before_the_local_one(course, tmp_path):
    info = entry("ada/tiny.ipynb")
    info.extra = struct.pack("<HHBi", archive.UNIX_TIME, 5, 1, 1_764_600_000)
    collect(course, make_zip(tmp_path / "z.zip", [(info, notebook("ada"))]))
    assert timestamps(course) == {"ada": "2025-12-01 14:40:00.000000 UTC"}


def test_a_timestamp_that_a_student_hands_in_is_not_believed(course, tmp_path):
    path = make_zip(
        tmp_path / "z.zip",
        {
            moodle(1, "Ada"): notebook("ada"),
            moodle(1, "Ada", "timestamp.txt"): "1999-01-01 00:00:00 UTC",
        },
    )
    collect(course, path)
    assert files(course.folder("submitted")) == {"Ada/tiny/tiny.ipynb": notebook("ada").encode()}


def test_utf8_names_without_the_flag_and_decomposed_ones_are_read_right(course, tmp_path):
    flagged = make_zip(tmp_path / "z.zip", {canvas(1, 2, "zoe\u0308"): notebook("z")}).read_bytes()
    infos = zipfile.ZipFile(io.BytesIO(flagged)).infolist()
    assert infos[0].flag_bits & archive.UTF8_NAME
    plain = flagged.replace(struct.pack("<HHH", 20, 0x800, 8), struct.pack("<HHH", 20, 0, 8))
    (tmp_path / "z.zip").write_bytes(plain)
    collect(course, tmp_path / "z.zip")
    assert submitted(course) == {"zo\u00eb_1": notebook("z")}


# --- the list of students -------------------------------------------------------------------------

CANVAS_GRADES = """\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Level 2 (77),Final Score
    Points Possible,,,,,6,(read only)
"Lovelace, Ada",11,S11,ada,"Tue, 9",,90
"Müller, Bo",12,S12,bo,Mon,3,80
"""
WORKSHEET = """Identifier,Full name,Email address,Status,Grade,Maximum Grade,\
Last modified (submission),Last modified (grade),Feedback comments
Participant 1,Ada Lovelace,ada@x.org,Submitted,,6.00,"Tuesday, 1 December 2026, 5:00 PM",-,
Participant 2,Bo,bo@x.org,No submission,,6.00,-,-,=1+1
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_a_canvas_gradebook_gives_logins(course, tmp_path):
    names = {canvas(11, 1, "lovelaceada"): notebook("a"), canvas(13, 2, "newbie"): notebook("n")}
    path = make_zip(tmp_path / "z.zip", names)
    collect(course, path, write(tmp_path / "g.csv", CANVAS_GRADES))
    assert submitted(course) == {"ada": notebook("a"), "newbie_13": notebook("n")}


def test_a_moodle_worksheet_gives_addresses_and_times_by_the_local_clock(
    course, tmp_path, monkeypatch
):
    path = make_zip(tmp_path / "z.zip", {moodle(1, "Ada Lovelace"): notebook("a")})
    collect(course, path, write(tmp_path / "w.csv", WORKSHEET))
    (time,) = timestamps(course).values()
    local = datetime(2026, 12, 1, 17).astimezone()
    assert time == f"{local.astimezone(archive.UTC):%Y-%m-%d %H:%M:%S.%f} UTC"
    assert list(submitted(course)) == ["ada@x.org"]


def test_times_that_come_with_the_list_later_are_entered(course, tmp_path):
    path = make_zip(tmp_path / "z.zip", {moodle(1, "Ada"): notebook("a")})
    collect(course, path)
    listed = write(tmp_path / "l.csv", "id;student;submitted\n1;Ada;2026-12-01 17:00 UTC\n")
    assert collect(course, path, listed) == [Collected("Ada", UNCHANGED)]
    assert timestamps(course) == {"Ada": "2026-12-01 17:00:00.000000 UTC"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has the columns of an empty file"),
        ("name,grade\nx,1\n", "has the columns name, grade"),
        ("id,student\n1,ada\n2,ada\n", "has two students 'ada'"),
        ("id,student,submitted\n1,ada,mañana\n", "has 'mañana' for a time"),
    ],
)
def test_a_list_that_is_none_is_one_sentence(tmp_path, text, sentence):
    with pytest.raises(CourseError, match=sentence):
        read_roster(write(tmp_path / "l.csv", text))


def test_a_list_of_another_system_is_not_taken_for_this_one(course, tmp_path):
    path = make_zip(tmp_path / "z.zip", {moodle(11, "Eva"): notebook("e")})
    collect(course, path, write(tmp_path / "g.csv", CANVAS_GRADES))  # there 11 is Ada
    assert submitted(course) == {"Eva": notebook("e")}


# --- again, newer, several ------------------------------------------------------------------------


def test_collecting_again_changes_nothing(course, tmp_path):
    path = make_zip(tmp_path / "z.zip", {canvas(1, 5, "ada", late=True): notebook("ada")})
    collect(course, path)
    before = files(course.classroom)
    assert [one.state for one in collect(course, path)] == [UNCHANGED]
    assert files(course.classroom) == before


def test_a_newer_one_replaces_an_older_one_which_is_kept_and_not_the_other_way(course, tmp_path):
    old = make_zip(tmp_path / "old.zip", {canvas(1, 5, "ada", late=True): notebook("old")})
    new = make_zip(tmp_path / "new.zip", {canvas(1, 6, "ada"): notebook("new")})
    collect(course, old)
    (one,) = collect(course, new)
    assert one.state == REPLACED
    assert "classroom/replaced/tiny/ada_1/1" in one.why
    assert files(course.classroom / "replaced/tiny/ada_1/1") == {
        "timestamp.txt": b"2026-12-05 10:00:00.000000 UTC",
        "tiny.ipynb": notebook("old").encode(),
    }
    assert submitted(course) == {"ada_1": notebook("new")}
    assert timestamps(course) == {}
    (one,) = collect(course, old)
    assert (one.state, submitted(course)) == (UNCHANGED, {"ada_1": notebook("new")})
    assert "new.zip, is newer" in one.why
    (one,) = collect(course, old, force=True)
    assert (one.state, submitted(course)) == (REPLACED, {"ada_1": notebook("old")})
    assert (
        files(course.classroom / "replaced/tiny/ada_1/2")["tiny.ipynb"]
        == b"" + notebook("new").encode()
    )


def test_what_was_not_collected_is_replaced_by_force_alone(course, tmp_path):
    there = course.notebook("submitted", "tiny", "ada_1")
    there.parent.mkdir(parents=True)
    there.write_text("by hand")
    path = make_zip(tmp_path / "z.zip", {canvas(1, 5, "ada"): notebook("ada")})
    (one,) = collect(course, path)
    assert (one.state, there.read_text()) == (PASSED_OVER, "by hand")
    assert "--force" in one.why
    collect(course, path, force=True)
    assert there.read_text() == notebook("ada")
    assert (course.classroom / "replaced/tiny/ada_1/1/tiny.ipynb").read_text() == "by hand"


def test_an_edit_by_hand_after_collecting_is_not_lost(course, tmp_path):
    collect(course, make_zip(tmp_path / "z.zip", {canvas(1, 5, "ada"): notebook("ada")}))
    course.notebook("submitted", "tiny", "ada_1").write_text("mended")
    (one,) = collect(course, make_zip(tmp_path / "y.zip", {canvas(1, 6, "ada"): notebook("b")}))
    assert (one.state, submitted(course)) == (PASSED_OVER, {"ada_1": "mended"})


def test_of_several_files_the_newest_notebook_of_this_level_counts(built, tmp_path):
    release = built.notebook("release", "tiny").read_text("utf-8")
    first, last = release.replace("...", "1", 1), release.replace("...", "2", 1)
    path = make_zip(
        tmp_path / "z.zip",
        {
            canvas(1, 7, "ada", rest="tiny-1.ipynb"): last,
            canvas(1, 6, "ada"): first,
            canvas(1, 8, "ada", rest="other.ipynb"): notebook("of another level"),
            canvas(1, 9, "ada", rest="tiny.json"): last,
            canvas(1, 10, "ada", rest="essay.pdf"): "%PDF",
        },
    )
    (one,) = collect(built, path)
    assert one == Collected("ada_1", TAKEN, "tiny-1.ipynb is the newest of 4 files")
    assert submitted(built) == {"ada_1": last}


def test_who_handed_in_no_notebook_is_named_with_what_there_was(course, tmp_path):
    path = make_zip(
        tmp_path / "z.zip",
        {
            canvas(1, 6, "ada", rest="essay.pdf"): "%PDF",
            "bo_2_text.html": "<p>my answer",
            canvas(3, 7, "cy", rest="all.zip"): "PK",
        },
    )
    assert collect(course, path) == [
        Collected("ada_1", PASSED_OVER, "no notebook among essay.pdf"),
        Collected("bo_2", PASSED_OVER, "no notebook among text.html"),
        Collected("cy_3", PASSED_OVER, "no notebook among all.zip"),
    ]
    assert not course.folder("submitted").exists()


def test_names_that_differ_in_case_alone_are_not_mixed_up(course, tmp_path):
    path = make_zip(
        tmp_path / "z.zip",
        {
            "Ada/tiny.ipynb": notebook("1"),
            "ada/tiny.ipynb": notebook("2"),
            "Stra\u00dfe/tiny.ipynb": notebook("3"),
            "STRASSE/tiny.ipynb": notebook("4"),
            "\ufb01/tiny.ipynb": notebook("5"),
            "fi/tiny.ipynb": notebook("6"),
            "zoe/tiny.ipynb": notebook("zoe"),
        },
    )
    collected = collect(course, path)
    assert [one.state for one in collected] == [PASSED_OVER] * 6 + [TAKEN]
    assert all("--roster" in one.why for one in collected[:6])
    assert submitted(course) == {"zoe": notebook("zoe")}


def test_a_folder_that_differs_in_case_from_one_that_is_there_is_not_made(course, tmp_path):
    course.folder("submitted", "ADA").mkdir(parents=True)
    (one,) = collect(course, make_zip(tmp_path / "z.zip", {"ada/tiny.ipynb": notebook("a")}))
    assert (one.state, one.why) == (
        PASSED_OVER,
        "the classroom has a folder 'ADA'; rename it to 'ada'",
    )


def test_notebooks_that_are_nobodys_or_in_several_folders_are_named(course, tmp_path):
    path = make_zip(
        tmp_path / "z.zip",
        {
            "tiny.ipynb": notebook("?"),
            "week1/ada/tiny.ipynb": notebook("a"),
            "week1/bo/tiny.ipynb": notebook("b"),
            "zoe/tiny.ipynb": notebook("z"),
        },
    )
    collected = {one.student: one for one in collect(course, path)}
    assert collected["tiny.ipynb"].why == "it is in no student's folder"
    assert "several folders" in collected["week1"].why
    assert collected["zoe"].state == TAKEN


# --- hostile and damaged --------------------------------------------------------------------------


def bomb(name: str) -> tuple[zipfile.ZipInfo, bytes]:
    return entry(name), b"0" * 6_000_000


@pytest.mark.parametrize(
    ("info", "why"),
    [
        (entry("../eve/tiny.ipynb"), "leads out"),
        (entry("/etc/tiny.ipynb"), "leads out"),
        (entry("C:/eve/tiny.ipynb"), "leads out"),
        (entry("eve/../../x/tiny.ipynb"), "leads out"),
        (entry("eve/tiny.ipynb", mode=stat.S_IFLNK | 0o777), "a link"),
        (entry("eve/tiny.ipynb", mode=stat.S_IFIFO | 0o777), "a link or a device"),
    ],
)
def test_names_that_lead_out_and_links_are_passed_over(course, tmp_path, info, why):
    path = make_zip(tmp_path / "z.zip", [(info, "/etc/passwd"), (entry("ok/tiny.ipynb"), "{}")])
    outside = files(tmp_path)
    collected = collect(course, path)
    assert [one.state for one in collected if why in one.why] == [PASSED_OVER]
    assert submitted(course) == {"ok": "{}"}
    new = files(tmp_path).keys() - outside.keys()
    assert all(name.startswith("course/classroom/") for name in new)


def test_a_bomb_is_not_unpacked_and_costs_only_its_own_place(course, tmp_path):
    path = make_zip(tmp_path / "z.zip", [bomb("eve/tiny.ipynb"), (entry("ok/tiny.ipynb"), "{}")])
    eve, ok = collect(course, path)
    assert (eve.state, ok.state) == (PASSED_OVER, TAKEN)
    assert "as a ZIP bomb does" in eve.why


def test_a_size_that_was_declared_too_small_is_found_out(course, tmp_path):
    path = make_zip(tmp_path / "z.zip", [bomb("eve/tiny.ipynb"), (entry("ok/tiny.ipynb"), "{}")])
    lie = path.read_bytes().replace(struct.pack("<I", 6_000_000), struct.pack("<I", 60))
    path.write_bytes(lie)
    eve, ok = collect(course, path)
    assert (eve.state, ok.state) == (PASSED_OVER, TAKEN)
    assert "damaged" in eve.why


def test_encrypted_and_unusual_entries_are_passed_over(course, tmp_path):
    path = make_zip(tmp_path / "z.zip", [(entry("ada/tiny.ipynb"), "{}")])
    data = path.read_bytes()
    path.write_bytes(
        data.replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00")
    )
    assert collect(course, path)[0].why == "tiny.ipynb: it is encrypted"
    info = entry("ada/tiny.ipynb")
    info.compress_type = zipfile.ZIP_LZMA
    make_zip(path, [(info, "{}")])
    assert "compressed in a way" in collect(course, path)[0].why


def test_too_many_entries_are_refused_as_a_whole(course, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_ENTRIES", 2)
    path = make_zip(tmp_path / "z.zip", {f"{who}/tiny.ipynb": "{}" for who in "abc"})
    with pytest.raises(CourseError, match="more than 2 entries"):
        collect(course, path)


def test_a_link_in_the_classroom_is_not_followed(course, tmp_path):
    outside = tmp_path / "outside"
    (outside / "tiny").mkdir(parents=True)
    course.folder("submitted").mkdir(parents=True)
    (course.folder("submitted") / "ada").symlink_to(outside)
    course.folder("submitted", "bo").mkdir()
    course.folder("submitted", "bo", "tiny").symlink_to(outside)
    names = {f"{who}/tiny.ipynb": "{}" for who in ("ada", "bo")}
    collected = collect(course, make_zip(tmp_path / "z.zip", names))
    assert [one.state for one in collected] == [PASSED_OVER] * 2
    assert files(outside) == {}


def test_a_full_disk_is_one_sentence_and_loses_nothing(course, tmp_path, monkeypatch):
    collect(course, make_zip(tmp_path / "z.zip", {canvas(1, 5, "ada"): notebook("old")}))
    before = files(course.classroom)
    path = make_zip(tmp_path / "y.zip", {canvas(1, 6, "ada"): notebook("new")})

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("autograde.collect.unpack", full)
    with pytest.raises(CourseError, match="No space left on device"):
        collect(course, path)
    assert files(course.classroom) == before


@given(st.text(max_size=300))
def test_every_name_becomes_the_name_of_a_folder(text):
    name = student_id(text)
    assert is_storable(name)
    assert len(name) <= 128  # the gradebook's limit
    assert name not in ("", ".", "..")
    assert not set("/\\+*?[]{}").intersection(name)
    assert not name.startswith((".", "-", " "))
    assert student_id(name) == name


PARTS = """ada Ada .. . / \\ C: + * tiny tiny.ipynb timestamp.txt é e\u0301 \u202e \x00 \x1b[2J
    a_1_2_tiny.ipynb x_LATE_3_4_t.ipynb submission_metadata.yml assignment_1_export"""
PART = st.sampled_from([*PARTS.split(), "", "n" * 300, "E F_5_assignsubmission_file_"])


@pytest.mark.filterwarnings("ignore:Duplicate name")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.tuples(st.lists(PART, min_size=1, max_size=4), st.booleans()), max_size=8),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4),
)
def test_no_zip_writes_outside_the_classroom_or_ends_in_a_traceback(course, tmp_path, names, noise):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for parts, compressed in names:
            info = entry("/".join(parts) or "x")
            info.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
            made.writestr(info, ":created_at: 1\n" * 3)
    data = bytearray(buffer.getvalue())
    for place, value in noise:
        data[int(place * (len(data) - 1))] = value
    path = tmp_path / "z.zip"
    path.write_bytes(bytes(data))
    outside = files(tmp_path)
    with contextlib.suppress(CourseError):
        for one in collect(course, path):
            assert one.student.isprintable()
            assert one.why.isprintable()
    new = files(tmp_path).keys() - outside.keys()
    assert all(name.startswith("course/classroom/") for name in new)
    for path in course.folder("submitted").glob("*"):
        assert is_storable(path.name)
        assert {p.name for p in path.glob("*/*")} <= {"tiny.ipynb", "timestamp.txt"}


# --- the command ----------------------------------------------------------------------------------


def test_the_command_sums_up_and_its_exit_code_says_if_something_was_passed_over(course, tmp_path):
    good = make_zip(tmp_path / "[b]good.zip", {canvas(1, 5, "ada"): notebook("ada")})
    bad = make_zip(tmp_path / "bad.zip", {canvas(2, 6, "bo", rest="x.pdf"): "%PDF"})
    done = autograde("collect", "tiny", good, bad, good, cwd=course.root)
    assert (done.returncode, done.stderr) == (1, "")
    assert "bo_2" in done.stdout
    assert "no notebook among x.pdf" in done.stdout
    assert done.stdout.endswith("1 taken, 0 replaced, 1 unchanged, 1 passed over\n")


def test_the_command_says_in_one_sentence_what_is_no_zip(course):
    done = autograde("collect", "tiny", __file__, cwd=course.root)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "is no ZIP file, or a damaged one" in line


def test_what_is_not_there_is_one_sentence(course):
    with pytest.raises(CourseError, match=r"There is no file nothing\.zip"):
        collect(course, Path("nothing.zip"))
    with pytest.raises(CourseError, match=r"The roster nothing\.csv can't be read"):
        read_roster(Path("nothing.csv"))


def test_a_roster_says_how_a_name_is_written(course, tmp_path):
    text = 'Student,ID,SIS User ID,SIS Login ID,Section\n"Müller, Bo",12,S12,bo,Mon\n'
    roster = write(tmp_path / "roster.csv", text)
    path = make_zip(tmp_path / "z.zip", {canvas(12, 2, "mullerbo"): notebook("b")})
    collect(course, path, roster)
    assert origins(course, "tiny")["bo"].person.name == "Müller, Bo"
