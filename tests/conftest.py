"""Settings and fixtures of all tests: threads, and a real browser."""

import os
import shutil
from collections.abc import Callable, Iterator

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

torch.set_num_threads(1)  # the tests run side by side: threads of their own would only compete

TOO_LONG_S = 60  # with every core busy a page, or a grader behind it, may take its time
expect.set_options(timeout=TOO_LONG_S * 1000)


@pytest.fixture(scope="module")  # not longer: its event loop is in the way of everybody else's
def chromium() -> Iterator[Browser]:
    """Chromium, without a window."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium to look at pages with: apt install chromium")
    words = ["--disable-dev-shm-usage"]  # containers have little of it
    if os.geteuid() == 0:
        words.append("--no-sandbox")  # which refuses root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=words)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """An empty tab."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(TOO_LONG_S * 1000)
    yield context.new_page()
    context.close()


@pytest.fixture
def noted(page: Page) -> list[str]:
    """What the tab fetches from elsewhere, pops up, or complains about."""
    notes: list[str] = []

    def fetched(url: str) -> None:
        if not url.startswith(("file:", "data:")):
            notes.append(f"fetched {url}")

    page.on("request", lambda request: fetched(request.url))
    page.on("console", lambda message: notes.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: notes.append(f"error: {error}"))
    page.on("popup", lambda popup: notes.append(f"opened {popup.url}"))

    def popped_up(dialog: object) -> None:
        notes.append("a dialog")
        dialog.dismiss()  # type: ignore[attr-defined]

    page.on("dialog", popped_up)
    return notes


@pytest.fixture
def accessible(page: Page) -> Callable[[], None]:
    """Demand that axe finds nothing that would keep somebody from reading the page."""

    def check() -> None:
        found = Axe().run(page).response["violations"]
        assert not found, [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]

    return check
