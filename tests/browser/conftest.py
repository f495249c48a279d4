"""The browser, the server and a page with the panel open. Says what is missing when it skips."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent
ARTIFACTS = HERE / "artifacts"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update"]  # fmt: skip
BOOT_MS = 60_000  # a machine of two busy cores


def host_module() -> ModuleType:
    """tests/browser/host.py; the test folders are no packages."""
    name = "lowpeak_tests_browser_host"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / "host.py")
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def _chromium() -> str | None:
    named = os.environ.get("CHROMIUM")
    return named or shutil.which("chromium") or shutil.which("chromium-browser")


def _frontend() -> Path | None:
    if os.environ.get("COMFYUI_FRONTEND"):  # the static folder of another version
        return Path(os.environ["COMFYUI_FRONTEND"])
    spec = importlib.util.find_spec("comfyui_frontend_package")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "static"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium through Playwright."""
    program = _chromium()
    if program is None:
        pytest.skip("chromium is missing: make test-browser, or apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """The host with the real frontend."""
    import torch  # noqa: F401  a cold import takes longer than a page may wait for an answer

    frontend = _frontend()
    if frontend is None:
        pytest.skip("comfyui-frontend-package is missing: make test-browser installs it")
    with host_module().BrowserHost(frontend) as host:
        yield host


@pytest.fixture(scope="session")
def session_page(browser: Any, server: Any) -> Iterator[Any]:
    """The frontend, booted once. `problems` on it lists page errors and failures of our files."""
    context = browser.new_context(viewport={"width": 1400, "height": 1100})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    # Only our server is there; a frontend that asks the world must not wait for it.
    context.route(lambda url: not url.startswith(server.url), lambda route: route.abort())
    page = context.new_page()
    page.set_default_timeout(BOOT_MS * 3 / 4)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("response", lambda answer: _note(page, answer))
    boot(page, server)
    yield page
    context.close()


def _note(page: Any, answer: Any) -> None:
    if answer.status >= 500 or (answer.status >= 400 and "/extensions/lowpeak/" in answer.url):
        page.problems.append(f"{answer.status} {answer.url}")


def boot(page: Any, server: Any) -> None:
    """Open the frontend and wait until it is usable."""
    page.goto(server.url, wait_until="domcontentloaded")
    page.wait_for_function("window.app?.extensionManager && window.app.graph", timeout=BOOT_MS)
    page.wait_for_function(
        "window.app.extensionManager.getSidebarTabs().some(tab => tab.id === 'lowpeak')",
        timeout=BOOT_MS,
    )


def open_tab(page: Any) -> Any:
    """Open our tab unless it is; gives its locator."""
    tab = page.locator(".lowpeak")
    if not tab.count():
        page.evaluate("window.app.extensionManager.sidebarTab.toggleSidebarTab('lowpeak')")
    tab.wait_for()
    return tab


def load_graph(page: Any, name: str) -> None:
    """Put one of our example graphs on the canvas, alone."""
    text = (HERE.parents[1] / f"workflows/{name}.json").read_text("utf-8")
    page.evaluate("graph => window.app.loadGraphData(graph)", json.loads(text))


def set_widgets(page: Any, node_type: str, values: dict[str, Any]) -> None:
    """Change widgets of the first node of a type, as typing into them does."""
    page.evaluate(
        """([type, values]) => {
            const node = window.app.graph.nodes.find(node => node.type === type);
            for (const [name, value] of Object.entries(values)) {
                const widget = node.widgets.find(widget => widget.name === name);
                widget.value = value;
                widget.callback?.(value);
            }
        }""",
        [node_type, values],
    )


def widget(page: Any, node_type: str, name: str) -> Any:
    """Value of a widget of the first node of a type."""
    return page.evaluate(
        """([type, name]) => window.app.graph.nodes.find(node => node.type === type)
            .widgets.find(widget => widget.name === name).value""",
        [node_type, name],
    )


def picture(page: Any, name: str) -> None:
    """Keep screenshots to look at: the window, and the panel with all it holds."""
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=str(ARTIFACTS / f"{name}.png"))


@pytest.fixture
def page(session_page: Any, server: Any) -> Iterator[Any]:
    """The page with the light graph and the tab open, on the 8 GiB card; no problem may come up."""
    server.engine.broken = None
    server.engine.use(8)
    load_graph(session_page, "text_to_video_light")
    open_tab(session_page)
    session_page.problems.clear()
    yield session_page
    assert session_page.problems == []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Iterator[None]:
    """A failed test leaves a picture of the page."""
    outcome = yield
    page = getattr(item, "funcargs", {}).get("page")
    if call.when == "call" and page is not None and outcome.get_result().failed:
        picture(page, f"FAILED-{item.name}")
