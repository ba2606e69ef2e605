"""Feedback says what a student needs, nothing of the tests, and lets no submission act."""

import base64
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.api import Gradebook
from tiny_course import autograde

from autograde.assignment import Assignment
from autograde.course import find_alembic, find_course
from autograde.feedback import feedback_page
from autograde.grade import grade
from autograde.marks import Marks
from autograde.master import items, read_master, secret_lines, settings
from autograde.notebook import read_notebook
from autograde.outputs import HTML
from autograde.shown import MAX_PICTURES, MAX_TEXT, Room, outputs
from autograde.verdict import ItemResult, Outcome, Verdict

COURSE = find_course(Path(__file__).parents[2])
HOSTILE = (
    "</code></pre><script>alert(1)</script>",
    '"><img src="https://example.org/x" onerror="alert(1)">',
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u202c\x07\x1b[31mred\u2028",
    "<svg/onload=alert(1)><iframe src=//example.org>",
)
ACTING = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '<img src="https://example.org/pixel.png">',
    '<img src="data:image/svg+xml;base64,PHN2Zy8+">',
    '<img src="data:text/html,<script>alert(1)</script>">',
    '<a href="javascript:alert(1)">x</a><a href="https://example.org" ping="//example.org">y</a>',
    '<div style="background:url(https://example.org/x);position:fixed;inset:0">cover</div>',
    "<p style=\"background-image:image-set('//example.org/x' 1x)\">p</p>",
    "<style>@import '//example.org/x';</style><link rel=stylesheet href=//example.org/x>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe><object data=//example.org></object>",
    "<form action=//example.org><input autofocus onfocus=alert(1)><button>Go</button></form>",
    "<meta http-equiv=refresh content='0;url=//example.org'><base href=//example.org>",
    "<svg><use href='//example.org/x#a'/><script>alert(1)</script></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<details ontoggle=alert(1) open><summary>s</summary></details>",
    "</div></section></main><h1>You have 100 points</h1>",
    "<video src=//example.org/v autoplay></video><audio src=//example.org/a>",
    "<table background=//example.org/x><td background=//example.org/x>cell",
)


def marks(*found, reason="", notes=(), comments=(), student="ada", penalty=0.0):
    verdict = Verdict(student, "tiny", found, reason=reason, notes=notes)
    return Marks(verdict, "", dict(comments), penalty, None, None)


def notebook(*cells):
    return new_notebook(cells=list(cells))


def answer(name, source="x = 1", shown=()):
    about = {"grade_id": name, "solution": True, "grade": False}
    return new_code_cell(source, id=name, metadata={"nbgrader": about}, outputs=list(shown))


def display(**data):
    return new_output("display_data", data={HTML if k == "html" else k: v for k, v in data.items()})


def parsed(page):
    return BeautifulSoup(page, "html.parser")


def inert(page):
    """The page, in which nothing runs and nothing is fetched."""
    soup = parsed(page)
    fine = {"html", "head", "meta", "title", "style", "body"}
    assert not soup.find_all(
        ["script", "iframe", "object", "embed", "form", "input", "link", "base", "svg", "video",
         "audio", "source", "math"]
    )  # fmt: skip
    assert len(soup.find_all("style")) == 1
    for tag in soup.find_all(True):
        for name, value in tag.attrs.items():
            text = " ".join(value) if isinstance(value, list) else value
            assert not name.startswith("on"), tag
            if name in ("src", "href"):
                assert text.startswith(("data:image/png;base64,", "#")), tag
            if name == "style":
                assert "url" not in text.lower(), tag
                assert "position" not in text.lower(), tag
            assert name not in ("srcset", "ping", "background", "action", "formaction"), tag
    assert fine <= {tag.name for tag in soup.find_all(True)}
    (policy,) = (m["content"] for m in soup.find_all("meta", {"http-equiv": True}))
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy
    return soup


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_any_kind_is_only_text(text):
    page = feedback_page(
        marks(
            ItemResult("T_x", Outcome.WRONG, 0, 2, text),
            notes=(text,), comments={"T_x": text}, student=text,
        ),
        notebook(
            answer("T_x", text, [
                new_output("stream", name="stdout", text=text),
                new_output("error", ename=text, evalue=text, traceback=[text]),
                display(**{"text/plain": text}),
            ]),
            new_markdown_cell(text, metadata={"nbgrader": {
                "grade_id": "T_w", "solution": True, "grade": True}}),
            new_code_cell(text, id="student-001"),
        ),
    )  # fmt: skip
    soup = inert(page)
    assert "\u202e" not in page
    assert "\x07" not in page
    assert "\x1b" not in page
    assert soup.find("h3", id="T_x")


@pytest.mark.parametrize("html", ACTING)
def test_html_of_a_display_only_looks(html):
    shown = display(html=html + "<b>still here</b>", **{"text/plain": "plain"})
    soup = inert(feedback_page(marks(), notebook(answer("T_x", shown=[shown]))))
    (piece,) = soup.find_all(class_="html")
    assert piece.parent.name == "section"  # what it closes is its own
    assert len(soup.find_all("h1")) - len(piece.find_all("h1")) == 1


def test_a_token_strip_keeps_its_looks_and_a_picture_its_words():
    from course_lib.teaching.show import perplexity_curve
    from course_lib.teaching.strip import token_strip

    strip = token_strip([1, 2], [-100, 3], name=str)
    curve = perplexity_curve()
    shown = [
        display(html=strip._repr_html_(), **{"text/plain": "strip"}),
        display(html=curve._repr_html_(), **{"text/plain": "curve"}),
    ]
    soup = inert(feedback_page(marks(), notebook(answer("T_x", shown=shown))))
    one, two = soup.find_all(class_="html")
    assert [cell["style"] for cell in one.find_all("td")]
    assert "background" in one.td["style"]
    assert two.img["alt"] == curve.alt
    assert base64.b64decode(two.img["src"].split(",")[1]).startswith(b"\x89PNG")


def test_sizes_are_capped_and_what_was_cut_is_said():
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(MAX_PICTURES // 2)).decode()
    shown = [display(**{"image/png": png, "text/plain": "p"}) for _ in range(3)]
    shown += [new_output("stream", name="stdout", text="x" * 3 * MAX_TEXT)]
    page = feedback_page(marks(), notebook(answer("T_x", shown=shown)))
    assert len(page) < 2_000_000
    assert "a picture that is too large to show here" in page
    assert "more characters are not shown" in page
    (evil,) = outputs(answer("T_x", shown=[display(**{"image/png": "evil"})]), Room())
    assert not evil.picture


def test_a_misunderstanding_is_told_with_what_refutes_it():
    item = ItemResult("T_x", Outcome.WRONG, 0, 2, "In bits. (misconception M6; read on: …)", "M6")
    soup = parsed(feedback_page(marks(item), notebook(answer("T_x"))))
    told = soup.find(class_="belief").get_text()
    assert "M6" in told
    assert "1.62" in told
    assert "Read on: Primer, Perplexity" in told
    assert "misconception M6; read on" not in soup.get_text()


def test_marks_and_comments_of_a_person_are_on_it():
    right = ItemResult("T_x", Outcome.CORRECT, 2, 2)
    written = ItemResult("T_w", Outcome.NEEDS_PERSON, None, 3)
    cells = notebook(answer("T_x"), answer("T_w"))
    waiting = parsed(feedback_page(marks(right, written), cells))
    assert "2 of 5 points so far" in waiting.find(class_="score").get_text()
    assert "1 answer awaits a person’s mark: T_w" in waiting.get_text()
    marked = replace(written, outcome=Outcome.MARKED, points=2.5)
    done = marks(right, marked, comments={"T_w": "Well said,\nbut short."}, penalty=1)
    soup = parsed(feedback_page(done, cells))
    assert "T_w marked by a person" in soup.find(class_="next").get_text()
    assert (
        "3.5 of 5 points, after 1 off for handing in late" in soup.find(class_="score").get_text()
    )
    assert "Well said,\nbut short." in soup.find(class_="comment").get_text()
    full = parsed(feedback_page(marks(right, replace(marked, points=3)), cells))
    assert "Every item is right" in full.get_text()


def test_what_could_not_be_graded_says_why_and_what_to_do():
    soup = inert(feedback_page(marks(reason="The file is empty; save the notebook."), None))
    assert "The file is empty; save the notebook." in soup.find(class_="warning").get_text()
    assert "hand in again" in soup.get_text()


@pytest.mark.parametrize("step", ["solution", "release"])
@pytest.mark.parametrize("level", ["level1", "level2"])
def test_nothing_of_a_hidden_test_is_on_the_page_of_who_passes_or_fails(level, step, nursery):
    source = read_master(COURSE.masters / f"{level}.py")
    release = read_notebook(COURSE.notebook("release", level))
    graded = grade(
        COURSE.notebook(step, level).read_bytes(), Assignment(level, release, source), nursery
    )
    assert graded.notebook is not None
    mine = Marks(graded.verdict, "", {}, 0.0, None, None)
    text = parsed(feedback_page(mine, graded.notebook)).get_text()
    for item in items(source):
        assert item.name in text
    for cell in source.cells:
        hidden, _ = secret_lines(cell.source)
        if not settings(cell).get("solution"):
            for line in hidden:
                assert line.strip() not in text or len(line.strip()) < 12, line


@pytest.fixture(scope="module")
def marked(graded, tmp_path_factory):
    """The graded sample class, one written answer marked by hand."""
    root = tmp_path_factory.mktemp("feedback") / "course"
    shutil.copytree(graded, root)
    course = find_course(root)
    find_alembic()
    with Gradebook(course.nbgrader.db_url, course.nbgrader.course_id) as book:
        graded_by_hand = book.find_grade("T_words", "tiny", "tiny", "obrien-001")
        graded_by_hand.manual_score = 1
        comment = book.find_comment("T_words", "tiny", "tiny", "obrien-001")
        comment.manual_comment = "Nicely <b>put</b>."
        book.db.commit()
    return root


def test_a_class_gets_a_page_each_with_a_persons_marks(marked):
    done = autograde("feedback", "tiny", cwd=marked)
    assert (done.returncode, done.stderr) == (0, "")
    assert "17 pages in classroom/feedback" in done.stdout
    course = find_course(marked)
    for student in course.submitted_students("tiny"):
        page = course.notebook("feedback", "tiny", student).with_suffix(".html")
        inert(page.read_text("utf-8"))
    page = course.notebook("feedback", "tiny", "obrien-001").with_suffix(".html")
    soup = parsed(page.read_text("utf-8"))
    assert "6 of 6 points" in soup.find(class_="score").get_text()
    assert "Nicely <b>put</b>." in soup.find(class_="comment").get_text()


def test_a_name_that_nobody_has_is_one_sentence(marked):
    done = autograde("feedback", "tiny", "nobody", cwd=marked)
    assert done.returncode == 2
    assert done.stderr == "autograde: No verdict on tiny by nobody.\n"


def test_nbgrader_releases_the_pages(marked, tmp_path):
    """By its own command, from the stamps that its collect leaves beside a submission."""
    course, exchange = find_course(marked), tmp_path / "exchange"
    exchange.mkdir(mode=0o777)
    exchange.chmod(0o777)
    folder = course.folder("submitted", "obrien-001", "tiny")
    stamp = datetime(2026, 11, 3, 12).strftime("%Y-%m-%d %H:%M:%S.%f UTC")
    (folder / "timestamp.txt").write_text(stamp)
    (folder / "submission_secret.txt").write_text("a secret")
    assert autograde("feedback", "tiny", "obrien-001", cwd=marked).returncode == 0
    nbgrader = Path(shutil.which("nbgrader") or "")
    done = subprocess.run(
        [nbgrader, "release_feedback", "tiny", "--student", "obrien-001",
         f"--Exchange.root={exchange}", "--Exchange.assignment_dir=."],
        cwd=marked, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (released,) = exchange.glob("*/feedback/*.html")
    page = course.notebook("feedback", "tiny", "obrien-001").with_suffix(".html")
    assert released.read_bytes() == page.read_bytes()
    assert re.fullmatch(r"[0-9a-f]{32}", released.stem)
