"""One browser for all, a server and a context for each test. Skips say what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from browser import tools
from browser.host import BrowserHost

LAUNCH_MS = 180_000  # a cold disk


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium through Playwright."""
    program = tools.chromium()
    if program is None:
        pytest.skip("chromium is missing: make browser, or apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing")
    with sync_api.sync_playwright() as playwright:
        sync_api.expect.set_options(timeout=tools.WAIT_MS)
        running = playwright.chromium.launch(
            executable_path=program, args=tools.FLAGS, timeout=LAUNCH_MS
        )
        yield running
        running.close()


class Opener:
    """Opens fresh pages on a fresh server: `opener(...)` gives the page, `host` is the server."""

    def __init__(self, browser: Any, host: BrowserHost, show: Callable[..., None]) -> None:
        self.host, self.pages = host, []
        self._browser, self._show = browser, show
        self.problems: list[str] = []
        self.closing = ExitStack()

    def __call__(self, *, width: int = 1400, height: int = 1100, **how: Any) -> Any:
        """A new context with the panel open."""
        context = self._browser.new_context(
            viewport={"width": width, "height": height},
            permissions=["clipboard-read", "clipboard-write"],
        )
        self.closing.callback(context.close)
        context.set_default_timeout(tools.WAIT_MS)
        page = context.new_page()
        self.pages.append(page)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("response", self._note)
        self._show(page, self.host.url, **how)
        return page

    def _note(self, answer: Any) -> None:
        if answer.status >= 500 or (answer.status >= 400 and "/extensions/lowpeak/" in answer.url):
            self.problems.append(f"{answer.status} {answer.url}")


def _opened(browser: Any, frontend: Path | None, show: Callable[..., None]) -> Iterator[Opener]:
    with BrowserHost(frontend) as host:
        opener = Opener(browser, host, show)
        with opener.closing:
            yield opener
        assert opener.problems == []


@pytest.fixture
def stage(browser: Any) -> Iterator[Opener]:
    """Opens the panel on the stage: stage(locale="zh", theme="light")."""
    yield from _opened(browser, None, tools.open_stage)


@pytest.fixture
def host(stage: Opener) -> BrowserHost:
    """The server behind `page`."""
    return stage.host


@pytest.fixture
def page(stage: Opener) -> Any:
    """The panel on the stage, in English and dark, with its forecast."""
    page = stage()
    tools.verdict_with(page, "Fits. About")
    return page


@pytest.fixture(
    params=tools.frontends() or [None], ids=lambda path: path.name if path else "no frontend"
)
def comfy(browser: Any, request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Opens the panel in the real frontend."""
    if request.param is None:
        pytest.skip("comfyui-frontend-package is missing: make browser, or set COMFYUI_FRONTEND")
    folder = tools.static_folder(request.param)
    yield from _opened(browser, folder, tools.open_frontend)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Iterator[None]:
    """A failed test leaves a picture of each of its pages."""
    outcome = yield
    if call.when != "call" or not outcome.get_result().failed:
        return
    for value in getattr(item, "funcargs", {}).values():
        for number, page in enumerate(getattr(value, "pages", [])):
            tools.picture(page, f"FAILED-{item.name}-{number}")
