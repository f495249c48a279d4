"""The panel in a real ComfyUI: its own frontend, its routes, a run on the miniature checkpoint.

Needs COMFYUI_DIR (and COMFYUI_PYTHON) as tests/comfy/test_real_server.py does.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import tools
from browser.tools import verdict_with

pytest.importorskip("playwright.sync_api", reason="playwright is missing")
from playwright.sync_api import expect

CHECKPOINT = "vdn-minimax-h3-edge"  # the name the example graphs carry
SMALL = {"width": 256, "height": 256, "seconds": 0.9, "base_steps": 4, "refine_steps": 1}

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("COMFYUI_DIR"),
        reason="COMFYUI_DIR is not set: no ComfyUI checkout to show the panel in",
    ),
    pytest.mark.timeout(900),
]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A running ComfyUI with the pack and the miniature."""
    from lowpeak.engine.toy import write_toy

    path = tools.REPOSITORY / "tests/comfy/real_server.py"
    spec = importlib.util.spec_from_file_location("lowpeak_tests_real_server", path)
    assert spec and spec.loader
    module = sys.modules.setdefault(spec.name, importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    server = module.ComfyServer(Path(os.environ["COMFYUI_DIR"]), tmp_path, tools.REPOSITORY)
    folder = tmp_path / "models/lowpeak" / CHECKPOINT
    write_toy(folder, size="tiny", weight_format="edge-fp8-rowwise", seed=1)
    with server:
        yield f"http://127.0.0.1:{server.port}"


def test_a_run_is_forecast_live_and_measured(url: str, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 1100})
    context.set_default_timeout(tools.WAIT_MS)
    page, problems = context.new_page(), []
    page.on("pageerror", lambda error: problems.append(str(error)))
    context.request.post(f"{url}/settings", data={"Comfy.TutorialCompleted": True})
    tools.open_frontend(page, url)
    verdict_with(page, "Fits")
    tools.set_widgets(page, SMALL)
    verdict_with(page, "256 × 256")  # noqa: RUF001
    tools.queue(page)
    ram = page.get_by_role("img", name=re.compile("^RAM of this run: Lowpeak"))
    expect(ram).to_be_visible(timeout=300_000)
    said = ram.get_attribute("aria-label") or ""
    last = page.locator(".lp-last")
    expect(last).to_contain_text("Took ", timeout=300_000)
    expect(last.locator("summary", has_text="Kernels used")).to_be_visible()
    expect(page.locator(".lp-blocks, .lp-key-vram")).to_have_count(0)  # there is no card
    tools.picture(page, "real-comfyui")
    context.close()
    assert problems == []
    limited = "other programs" not in said  # in a container what others hold cannot be told
    assert limited or re.search(r"other programs \d+\.\d GiB, can be freed \d+\.\d GiB", said), said
