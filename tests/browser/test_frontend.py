"""The panel in ComfyUI's real frontend: what a stage cannot show. COMFYUI_FRONTEND names others.

The pictures of docs/images are made here: LOWPEAK_PICTURES=docs/images make test-browser
"""
# ruff: noqa: RUF001  (the panel writes real multiplication and minus signs)

from __future__ import annotations

import functools
import re
from typing import Any

import pytest
from browser import tools
from browser.replays import replay_of
from browser.tools import verdict_with

pytest.importorskip("playwright.sync_api", reason="playwright is missing")
from playwright.sync_api import expect

pytestmark = pytest.mark.timeout(900)
SMALL = {"width": 1120, "height": 900}  # of a window whose picture is shown in the docs
LARGE = {"width": 1920, "height": 1088, "seconds": 15.0}


def test_widgets_of_the_canvas_are_forecast_in_old_and_new_nodes(comfy: Any) -> None:
    page = comfy(**SMALL)
    verdict_with(page, "1344 × 768")
    for modern, width in ((False, 960), (True, 1152)):
        tools.set_setting(page, "Comfy.VueNodes.Enabled", modern)
        steps = ({"width": at, "height": 640} for at in (512, 640, width))
        before = comfy.host.forecasts
        tools.set_widgets(page, *steps)
        verdict_with(page, f"{width} × 640")
        assert comfy.host.forecasts - before <= 2
    comfy.host.engine.use(4)
    tools.set_widgets(page, LARGE)
    verdict_with(page, "Does not fit: VRAM is short by")
    tools.picture(page, "refusal", keep=True, panel_only=True)
    page.get_by_role("button", name=re.compile("Use a size that fits")).first.click()
    verdict_with(page, "Fits. About")
    assert {name: tools.widget(page, name) for name in LARGE} != LARGE


def test_a_run_is_live_survives_a_reload_and_ends_measured(comfy: Any) -> None:
    page, host = comfy(**SMALL), comfy.host
    verdict_with(page, "Fits. About")
    host.replay = functools.partial(replay_of, hold=True)
    tools.queue(page)
    now = page.get_by_role("heading", name=re.compile("Now: second pass, step 2 of 3"))
    expect(now).to_be_visible()
    expect(page.locator(".lp-curve canvas")).to_have_count(2)
    tools.boot(page, host.url)
    tools.open_tab(page)
    expect(now).to_be_visible()
    expect(page.locator(".lp-curve canvas")).to_have_count(2)
    tools.picture(page, "during", keep=True)
    host.go.set()
    last = page.locator(".lp-last")
    expect(last).to_contain_text("Second pass: took 10 % longer, VRAM 4 % less, RAM as forecast.")
    expect(now).to_have_count(0)
    assert [prompt for prompt in host.prompts if "fox" in str(prompt)], "the graph's prompt is run"


def test_a_failed_run_says_why_beside_comfyuis_own_message(comfy: Any) -> None:
    page = comfy()
    verdict_with(page, "Fits. About")
    comfy.host.replay = functools.partial(replay_of, fail=True)
    tools.queue(page)
    expect(page.locator(".lp-last [role=alert]")).to_have_text("Failed")
    expect(page.locator(".lp-last")).to_contain_text("MeasuredOverrun: second pass used more VRAM")


def test_both_themes_of_comfyui_can_be_read(comfy: Any) -> None:
    page = comfy(**SMALL)
    verdict_with(page, "Fits. About")
    comfy.host.replay = replay_of
    for theme in ("dark", "light"):
        tools.set_setting(page, "Comfy.ColorPalette", theme)
        page.locator(f".lowpeak[data-theme={theme}]").wait_for()
        tools.picture(page, f"before-{theme}", keep=True)
    tools.queue(page)
    expect(page.locator(".lp-last")).to_contain_text("Took ")
    tools.set_widgets(page, LARGE)
    verdict_with(page, "1920 × 1088")
    tools.unfold(page)
    expect(page.locator(".lp-heat .lp-waits")).to_have_count(0)
    for theme in ("dark", "light"):
        tools.set_setting(page, "Comfy.ColorPalette", theme)
        page.locator(f".lowpeak[data-theme={theme}]").wait_for()
        found = tools.contrasts(page)
        assert len(found) > 100
        assert [item for item in found if item[1] < 4.5] == []
        page.get_by_text("What if", exact=True).evaluate("e => e.scrollIntoView()")
        tools.picture(page, f"what-if-{theme}", keep=True, panel_only=True)


def test_comfyuis_language_is_the_panels(comfy: Any) -> None:
    comfy.host.settings["Comfy.Locale"] = "zh"
    page = comfy()
    verdict_with(page, "放得下，约")
    tools.picture(page, "chinese-frontend")
