"""JupyterHub with an instructor and two students, in a real browser: the recipe of the docs.

Skipped without jupyterhub (`pip install jupyterhub`) and its proxy (`npm install -g
configurable-http-proxy`): neither is needed to grade.
"""

import contextlib
import importlib.util
import os
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest
from labs import BIN, QUIET, environment
from playwright.sync_api import expect
from test_exchange import COURSE, INSTRUCTOR, opened, own, run

from autograde.course import find_course
from autograde.store import kept_verdict

STUDENTS = ("nobody", "games")
CONFIG = """
c = get_config()
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
c.Spawner.cmd = [{python!r}, "-m", "jupyterhub.singleuser"]
c.Spawner.notebook_dir = "{place}/{{username}}"
c.Spawner.default_url = "/lab"
c.Spawner.environment = {{
    "JUPYTER_CONFIG_DIR": lambda spawner: f"{place}/home-of-{{spawner.user.name}}",
    "JUPYTER_DATA_DIR": lambda spawner: f"{place}/home-of-{{spawner.user.name}}/data",
    "JUPYTER_RUNTIME_DIR": lambda spawner: f"{place}/home-of-{{spawner.user.name}}/runtime",
    "IPYTHONDIR": lambda spawner: f"{place}/home-of-{{spawner.user.name}}/ipython",
}}
"""
EXCHANGE = """
c = get_config()
c.Exchange.root = "{place}/exchange"
c.Exchange.assignment_dir = "{place}/{user}"
c.CourseDirectory.course_id = "{course}"
"""


@pytest.fixture(scope="module")
def place():
    """A folder that all users may walk through."""
    if os.geteuid() != 0:
        pytest.skip("only root can act as several users")
    if not importlib.util.find_spec("jupyterhub") or not shutil.which("configurable-http-proxy"):
        pytest.skip("no JupyterHub here: pip install jupyterhub, npm install its proxy")
    with tempfile.TemporaryDirectory(prefix="hub-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def course(place, built_once):
    """The instructor's course, released; a desk and a home for everybody."""
    (place / "exchange").mkdir()
    (place / "exchange").chmod(0o777)
    shutil.copytree(built_once, place / INSTRUCTOR)
    for user in (INSTRUCTOR, *STUDENTS):
        (place / user).mkdir(exist_ok=True)
        home = place / f"home-of-{user}"
        (home / QUIET).parent.mkdir(parents=True)
        (home / QUIET).write_text('{"fetchNews": "false", "checkForUpdates": false}')
        # these users' own homes are none, so that theirs is not where the hub starts them
        settings = EXCHANGE.format(place=place, user=user, course=COURSE)
        if user == INSTRUCTOR:
            settings += f"c.CourseDirectory.root = {str(place / user)!r}\n"
        (home / "nbgrader_config.py").write_text(settings)
        own(user, home)
        own(user, place / user)
    root = place / INSTRUCTOR
    run(INSTRUCTOR, BIN / "nbgrader", "release_assignment", "tiny", cwd=root)
    return find_course(root)


@pytest.fixture(scope="module")
def hub(place, course):
    """The hub's address."""
    with contextlib.ExitStack() as stack:
        free = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        port, hub_port, api_port = (one.getsockname()[1] for one in free)
    settings = {"port": port, "hub_port": hub_port, "api_port": api_port, "place": place}
    (place / "hub").mkdir()
    config = place / "hub" / "config.py"
    config.write_text(CONFIG.format(python=sys.executable, **settings))
    command = [sys.executable, "-m", "jupyterhub", "-f", config]
    with (place / "hub" / "log").open("w") as log:
        process = psutil.Popen(
            ["unshare", "--mount", "sh", "-c", opened(place / "kept"), "sh", *map(str, command)],
            cwd=place / "hub",
            env=environment(place / "hub"),
            stdout=log,
            stderr=log,
        )
        url = f"http://127.0.0.1:{port}"
        try:
            end = time.monotonic() + 60
            while True:
                with contextlib.suppress(OSError):
                    urlopen(f"{url}/hub/login").close()
                    break
                assert process.poll() is None and time.monotonic() < end, (  # noqa: PT018
                    (place / "hub" / "log").read_text()
                )
                time.sleep(0.2)
            yield url
        finally:
            family = [*process.children(recursive=True), process]
            process.terminate()
            _, alive = psutil.wait_procs(family, timeout=15)
            for one in alive:
                one.kill()


def log_in(page, hub, user):
    """A tab of its own for a user, with their JupyterLab in it."""
    page.context.clear_cookies()
    page.goto(f"{hub}/hub/login")
    page.get_by_label("Username").fill(user)
    page.get_by_label("Password").fill("anything")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("menuitem", name="Nbgrader").wait_for()


def assignments(page):
    page.get_by_role("menuitem", name="Nbgrader").click()
    page.get_by_role("menuitem", name="Assignment List").click()
    return page.locator("#nbgrader-assignment-list")


def test_two_students_hand_in_and_read_their_feedback_on_a_hub(hub, place, course, page):
    for student in STUDENTS:
        log_in(page, hub, student)
        listed = assignments(page)
        listed.get_by_role("button", name="Fetch").click()
        listed.get_by_role("button", name="Submit").click()
        expect(listed.locator("#submitted_assignments_list")).to_contain_text("tiny")

    log_in(page, hub, INSTRUCTOR)
    page.goto(f"{hub}/user/{INSTRUCTOR}/formgrader/manage_assignments")
    expect(page.get_by_role("link", name="tiny")).to_be_visible()
    run(INSTRUCTOR, BIN / "nbgrader", "collect", "tiny", cwd=course.root)
    run(INSTRUCTOR, BIN / "autograde", "grade", "tiny", cwd=course.root)
    for student in STUDENTS:
        assert kept_verdict(course, "tiny", student).points == 0
    run(INSTRUCTOR, BIN / "autograde", "feedback", "tiny", cwd=course.root)
    run(INSTRUCTOR, BIN / "nbgrader", "release_feedback", "tiny", cwd=course.root)

    for student in STUDENTS:
        log_in(page, hub, student)
        assignments(page).get_by_role("button", name="Fetch Feedback").click()
        expect(page.get_by_text("view feedback")).to_be_visible()
        (fetched,) = (place / student / "tiny" / "feedback").glob("*/tiny.html")
        ours = course.notebook("feedback", "tiny", student).with_suffix(".html")
        assert fetched.read_text("utf-8") == ours.read_text("utf-8")
