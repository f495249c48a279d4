"""What the browser tests share: where browser and frontends are, and the moves of a user."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
ARTIFACTS = HERE / "artifacts"
UNPACKED = REPOSITORY / "build/frontends"
GRAPH = "text_to_video_light"
WAIT_MS = 60_000  # how long a condition may take on a loaded machine; a green test never waits so
BOOT_MS = 180_000  # the real frontend from a cold disk
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update",
         "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
         # Only our server is there; a frontend that asks the world must not wait for it.
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]  # fmt: skip


def chromium() -> str | None:
    """The browser: CHROMIUM, else one on the path."""
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return os.environ.get("CHROMIUM") or next(filter(None, found), None)


def frontends() -> list[Path]:
    """ComfyUI frontends to test with.

    COMFYUI_FRONTEND, several with the system's path separator between: each a wheel of
    comfyui-frontend-package, a folder with one, an unpacked package or its static folder. Else the
    package that is installed.
    """
    named = os.environ.get("COMFYUI_FRONTEND")
    if named:
        return [Path(path) for path in named.split(os.pathsep) if path]
    spec = importlib.util.find_spec("comfyui_frontend_package")
    return [] if spec is None or spec.origin is None else [Path(spec.origin).parent]


def static_folder(frontend: Path) -> Path:
    """The folder with index.html; a wheel is unpacked once, without its source maps."""
    wheels = [frontend] if frontend.suffix == ".whl" else sorted(frontend.glob("*.whl"))
    if wheels:
        frontend = UNPACKED / wheels[-1].stem
        if not frontend.is_dir():
            part = frontend.with_suffix(".part")
            with zipfile.ZipFile(wheels[-1]) as wheel:
                names = [name for name in wheel.namelist() if not name.endswith(".map")]
                wheel.extractall(part, names)
            part.rename(frontend)
    for inner in ("comfyui_frontend_package/static", "static", "."):
        if (frontend / inner / "index.html").is_file():
            return frontend / inner
    raise FileNotFoundError(f"COMFYUI_FRONTEND: {frontend} holds no index.html and no wheel")


def open_stage(page: Any, url: str, *, locale: str = "en", theme: str = "dark") -> None:
    """The panel on the stage, over one of our example graphs."""
    page.goto(f"{url}/?locale={locale}&theme={theme}", wait_until="domcontentloaded")
    page.wait_for_function("window.app")
    page.evaluate("graph => window.app.load(graph)", graph_of(GRAPH, "api"))
    open_tab(page)


def open_frontend(page: Any, url: str) -> None:
    """The panel in the real frontend, over one of our example graphs."""
    boot(page, url)
    page.evaluate("graph => window.app.loadGraphData(graph)", graph_of(GRAPH))
    open_tab(page)


def boot(page: Any, url: str) -> None:
    """Open the real frontend and wait until it is usable: our tab is there, and so is the graph it
    opens with, which would take the place of one that is loaded before it."""
    page.goto(url, wait_until="domcontentloaded", timeout=BOOT_MS)
    page.wait_for_function(
        """() => {
            const manager = window.app?.extensionManager;
            return manager?.workflow?.activeWorkflow && !manager.spinner && window.app.graph &&
                manager.getSidebarTabs().some(tab => tab.id === 'lowpeak');
        }""",
        timeout=BOOT_MS,
    )


def open_tab(page: Any) -> None:
    """Open our tab unless it is."""
    tab = page.locator(".lowpeak")
    if not tab.count():
        toggle_tab(page)
    tab.wait_for()


def toggle_tab(page: Any) -> None:
    """What a click on the sidebar's button does."""
    page.evaluate("window.app.extensionManager.sidebarTab.toggleSidebarTab('lowpeak')")


def graph_of(name: str, form: str = "") -> Any:
    """One of our example graphs."""
    return json.loads((REPOSITORY / "workflows" / form / f"{name}.json").read_text("utf-8"))


def set_widgets(page: Any, *steps: dict[str, Any], node_type: str = "LowpeakSample") -> None:
    """Change widgets of the first node of a type, step by step without a pause."""
    page.evaluate(
        """([type, steps]) => {
            const node = window.app.graph.nodes.find(node => node.type === type);
            for (const [name, value] of steps.flatMap(Object.entries)) {
                const widget = node.widgets.find(widget => widget.name === name);
                widget.value = value;
                widget.callback?.(value);
            }
        }""",
        [node_type, list(steps)],
    )


def widget(page: Any, name: str, node_type: str = "LowpeakSample") -> Any:
    """Value of a widget of the first node of a type."""
    return page.evaluate(
        """([type, name]) => window.app.graph.nodes.find(node => node.type === type)
            .widgets.find(widget => widget.name === name).value""",
        [node_type, name],
    )


def set_setting(page: Any, name: str, value: Any) -> None:
    """Change a setting of ComfyUI, as its dialog does."""
    page.evaluate(
        "([name, value]) => window.app.extensionManager.setting.set(name, value)", [name, value]
    )


def verdict_with(page: Any, text: str) -> str:
    """The panel's verdict and its detail, once they hold `text`."""
    head = page.locator(".lp-before").filter(has_text=text)
    head.wait_for()
    return str(head.inner_text())


def queue(page: Any) -> None:
    """What a click on Run does."""
    page.evaluate("window.app.queuePrompt(0, 1)")


def unfold(page: Any) -> None:
    """Open every folded section, and wait until what is asked for then has come."""
    page.evaluate("document.querySelectorAll('.lowpeak details').forEach(e => (e.open = true))")
    page.locator(".lp-result .lp-verdict").wait_for()


def contrasts(page: Any) -> list[tuple[str, float]]:
    """[text, contrast of its colour against what is behind it] of every text of the panel."""
    return [tuple(item) for item in page.evaluate((HERE / "contrast.js").read_text("utf-8"))]


def picture(page: Any, name: str, *, keep: bool = False, panel_only: bool = False) -> None:
    """A picture of the page to look at. keep: also a small one where LOWPEAK_PICTURES says."""
    ARTIFACTS.mkdir(exist_ok=True)
    path = ARTIFACTS / f"{re.sub('[^0-9A-Za-z.-]+', '-', name)}.png"
    clip = None
    if panel_only:
        clip = page.evaluate(
            """() => {
                const { left, width } = document.querySelector('.lowpeak').getBoundingClientRect();
                return { x: left, y: 40, width, height: innerHeight - 40 };
            }"""
        )
    page.screenshot(path=str(path), animations="disabled", clip=clip)
    if keep and os.environ.get("LOWPEAK_PICTURES"):
        from PIL import Image

        with Image.open(path) as shot:
            small = shot.convert("RGB").quantize(128, dither=Image.Dither.NONE)
            small.save(Path(os.environ["LOWPEAK_PICTURES"]) / f"panel-{name}.png", optimize=True)


def panel_picture(page: Any, name: str) -> None:
    """A picture of the whole panel, without scrolling."""
    panel = page.locator(".lowpeak")
    height = panel.evaluate("panel => panel.scrollHeight")
    page.set_viewport_size({"width": page.viewport_size["width"], "height": min(height, 6000)})
    ARTIFACTS.mkdir(exist_ok=True)
    panel.screenshot(path=str(ARTIFACTS / f"{name}.png"), animations="disabled")
