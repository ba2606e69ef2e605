"""JupyterLab in a real browser: a server of one's own, and a notebook's cells by their ids."""

import contextlib
import json
import os
import re
import socket
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import psutil
from playwright.sync_api import Locator, Page, expect

BIN = Path(sysconfig.get_path("scripts"))
START_S = 60
LAB = {
    "ServerApp": {"ip": "127.0.0.1", "port_retries": 0, "open_browser": False, "allow_root": True},
    # so that a test can go to a cell as a reader does by scrolling
    "LabApp": {"expose_app_in_browser": True},
}
QUIET = "lab/user-settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"


def environment(home: Path, **more: str) -> dict[str, str]:
    """Variables for Jupyter's commands that keep everything they write at `home`."""
    jupyter = {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("DATA", "RUNTIME")}
    config = {"JUPYTER_CONFIG_DIR": str(home), "HOME": str(home), "IPYTHONDIR": str(home)}
    path = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    return os.environ | jupyter | config | path | more


@contextmanager
def lab(*command: str, cwd: Path, home: Path) -> Iterator[str]:
    """The address of a JupyterLab that `command` starts in `cwd`; its token is `open`."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (home / QUIET).parent.mkdir(parents=True)
    (home / QUIET).write_text('{"fetchNews": "false", "checkForUpdates": false}', "utf-8")
    for name in ("jupyter_server_config.json", "jupyter_lab_config.json"):
        (home / name).write_text(json.dumps(LAB), "utf-8")
    variables = environment(home, JUPYTER_TOKEN="open", JUPYTER_PORT=str(port))
    with (home / "log").open("w") as log:
        server = psutil.Popen(command, cwd=cwd, env=variables, stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"
        try:
            _wait(server, f"{url}/api", home / "log")
            yield url
        finally:
            _end(server)


def _wait(server: psutil.Popen, url: str, log: Path) -> None:
    end = time.monotonic() + START_S
    while True:
        try:
            urlopen(url).close()
            return
        except OSError:
            late = time.monotonic() > end
            if late or server.poll() is not None:
                raise RuntimeError(f"JupyterLab did not start:\n{log.read_text('utf-8')}") from None
            time.sleep(0.1)


def _end(server: psutil.Popen) -> None:
    """End a command and what it started: under `make` that is the server, and then its kernels."""
    with contextlib.suppress(psutil.NoSuchProcess):
        family = [*server.children(recursive=True), server]
        for process in family:
            process.terminate()
        _, alive = psutil.wait_procs(family, timeout=10)
        for process in alive:
            process.kill()


class Notebook:
    """A notebook that is open in the browser, worked with as a student does."""

    def __init__(self, page: Page, url: str, path: str) -> None:
        self.page = page
        page.goto(f"{url}/lab/tree/{path}?token=open&reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible(timeout=START_S * 1e3)

    def cell(self, cell_id: str) -> Locator:
        """Scroll to a cell and choose it."""
        self.page.evaluate(
            """id => {
                const notebook = window.jupyterapp.shell.currentWidget.content;
                const at = notebook.widgets.findIndex(cell => cell.model.sharedModel.id === id);
                if (at < 0) throw new Error(`no cell ${id}`);
                notebook.activeCellIndex = at;
                notebook.deselectAll();
                return notebook.scrollToCell(notebook.widgets[at]);
            }""",
            cell_id,
        )
        return self.page.locator(".jp-Notebook .jp-Cell.jp-mod-active")

    def write(self, cell_id: str, source: str) -> None:
        """Replace what stands in a cell by typing."""
        cell = self.cell(cell_id)
        if cell.locator(".jp-RenderedMarkdown").is_visible():
            cell.locator(".jp-RenderedMarkdown").dblclick()
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(source)

    def run(self, cell_id: str) -> Locator:
        """Run a cell; what it puts out, once it has ended."""
        cell = self.cell(cell_id)
        before = cell.locator(".jp-InputPrompt").inner_text()
        cell.locator(".jp-InputPrompt").click()
        self.page.keyboard.press("Control+Enter")
        prompt = cell.locator(".jp-InputPrompt")
        ended = re.compile(rf"\[(?!{re.escape(before.strip('[]: ') or ' ')}\])\d+\]")
        expect(prompt).to_have_text(ended)
        return cell.locator(".jp-Cell-outputArea")

    def add_below(self, cell_id: str, source: str) -> str:
        """Put a code cell of one's own below another, run it, and tell what it puts out."""
        self.cell(cell_id).locator(".jp-InputPrompt").click()
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("b")
        cell = self.page.locator(".jp-Notebook .jp-Cell.jp-mod-active")
        cell.locator(".cm-content").click()
        self.page.keyboard.insert_text(source)
        self.page.keyboard.press("Control+Enter")
        expect(cell.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]"))
        return cell.locator(".jp-Cell-outputArea").inner_text()

    def save(self) -> None:
        """Save by keyboard."""
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+S")
        self.page.wait_for_function("!window.jupyterapp.shell.currentWidget.context.model.dirty")
