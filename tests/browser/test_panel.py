"""The panel in the real frontend, against the pack's own routes."""
# ruff: noqa: RUF001  (the panel writes real multiplication and minus signs)

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from lowpeak.engine.errors import RequestError
from lowpeak.engine.events import Event

HERE = Path(__file__).parent

pytestmark = pytest.mark.timeout(240)


def tools() -> Any:
    """tests/browser/conftest.py as a module; the test folders are no packages."""
    name = "lowpeak_tests_browser_tools"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / "conftest.py")
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def verdict_with(page: Any, text: str) -> str:
    """The panel's verdict and its detail, once the detail or the verdict holds `text`."""
    head = page.locator(".lowpeak [aria-live=polite]:not(.lp-sr)").filter(has_text=text).first
    head.wait_for()
    return head.inner_text()


def replay_of(plan: dict[str, Any], *, hold: bool = False, fail: bool = False) -> Any:
    """Engine events of a plan: VRAM peaks 4 % under the forecast, times 10 % over."""
    module = sys.modules["lowpeak_tests_browser_host"]
    events: list[Event | None] = []
    for phase in plan["phases"]:
        name, steps = phase["phase"], max(phase["steps"], 2)
        vram, ram = phase["vram_peak_bytes"], phase["ram_peak_bytes"]
        events.append(Event("forecast", name, seconds=phase["seconds"], vram_peak_bytes=vram,
                            ram_peak_bytes=ram, steps=steps))  # fmt: skip
        for step in range(1, steps + 1):
            used = int(vram * (0.7 + 0.25 * (step % 2)))
            events.append(Event("progress", name, step=step, steps=steps, vram_bytes=used,
                                ram_bytes=int(ram * 0.9)))  # fmt: skip
            if name == "sample_high" and step == 2:
                events.append(Event("notice", name, "The card is hot and slows down."))
                if hold:
                    events.append(None)
                if fail:
                    error = {"error": "MeasuredOverrun", "message": "sample_high used more VRAM"}
                    return module.Replay(events, {}, "failed", error)
        events.append(Event("measured", name, seconds=phase["seconds"] * 1.1,
                            vram_peak_bytes=int(vram * 0.96), ram_peak_bytes=ram))  # fmt: skip
    report = {
        "kernels": {"transformer": {"implementation": "triton", "reason": "fastest accurate one"}},
        "lora": [{"file": "grain.safetensors", "tensors": 700, "bound_tensors": 648,
                  "complete": False}],
    }  # fmt: skip
    return module.Replay(events, report)


def queue(page: Any) -> None:
    page.evaluate("window.app.queuePrompt(0, 1)")


def run_whole(page: Any, server: Any) -> None:
    """Queue the graph and wait for its measured end."""
    server.replay = replay_of
    server.go.set()
    queue(page)
    page.get_by_text(re.compile("^Took ")).wait_for()


def test_forecast_bars_appear_with_the_planners_numbers(page: Any, server: Any) -> None:
    text = verdict_with(page, "Fits. About")
    assert "1344 × 768 · 5.2 s" in text and "of 8.0 GiB VRAM" in text
    names = page.locator(".lp-row .lp-name").all_inner_texts()
    assert names[:5] == ["Encode", "First pass", "Upscale", "Second pass", "Decode"]
    answer = page.evaluate(
        """async () => (await window.app.api.fetchApi('/lowpeak/forecast', {method: 'POST',
            body: JSON.stringify({prompt: (await window.app.graphToPrompt()).output})})).json()"""
    )
    high = next(item for item in answer["phases"] if item["phase"] == "sample_high")
    wanted = f"Second pass, VRAM: forecast {high['vram_peak_bytes'] / 2**30:.2f} GiB"
    assert page.get_by_role("img", name=wanted).count() == 1
    assert page.locator(".lp-blocks").get_attribute("aria-label").startswith("Blocks: ")
    tools().picture(page, "before")


@pytest.mark.parametrize("nodes_2", [False, True])
def test_changed_widgets_are_forecast_once_they_rest(page: Any, server: Any, nodes_2: bool) -> None:
    page.evaluate(
        "on => window.app.extensionManager.setting.set('Comfy.VueNodes.Enabled', on)", nodes_2
    )
    verdict_with(page, "1344 × 768")
    before = server.forecasts
    for width in (512, 640, 768, 896, 960):
        tools().set_widgets(page, "LowpeakSample", {"width": width, "height": 544})
    verdict_with(page, "960 × 544")
    assert server.forecasts - before <= 2
    page.evaluate("window.app.extensionManager.setting.set('Comfy.VueNodes.Enabled', false)")


def test_a_refusal_offers_a_size_and_one_click_takes_it(page: Any, server: Any) -> None:
    server.engine.use(4)
    large = {"width": 1920, "height": 1088, "seconds": 15.0}
    tools().set_widgets(page, "LowpeakSample", large)
    text = verdict_with(page, "Does not fit: VRAM is short by")
    assert "RAM would be enough" in text
    assert page.locator(".lp-bar .lp-used").count() >= 1
    tools().picture(page, "refusal")
    assert page.locator(".lp-excess").count() == 1
    use = page.get_by_role("button", name=re.compile("Use a size that fits")).first
    label = use.get_attribute("aria-label") or ""
    use.focus()
    page.keyboard.press("Enter")
    verdict_with(page, "Fits. About")
    width, height = re.search(r"(\d+) × (\d+)", label).groups()
    assert tools().widget(page, "LowpeakSample", "width") == int(width)
    assert tools().widget(page, "LowpeakSample", "height") == int(height)


def test_what_if_answers_for_other_machines_by_keyboard(page: Any, server: Any) -> None:
    verdict_with(page, "Fits. About")
    page.get_by_text("What if", exact=True).focus()
    page.keyboard.press("Enter")
    result = page.locator(".lp-result")
    result.get_by_text("of 8.0 GiB VRAM").wait_for()
    page.get_by_label("Card").select_option("rtx-5090")
    result.get_by_text("of 32.0 GiB VRAM").wait_for()
    slider = page.get_by_label("VRAM of the other machine")
    assert slider.get_attribute("aria-valuetext") == "32 GiB"
    slider.focus()
    page.keyboard.press("ArrowLeft")
    result.get_by_text("of 24.0 GiB VRAM").wait_for()
    assert "8 GiB" in page.locator(".lp-head").inner_text()  # this machine is still this machine
    tools().picture(page, "what-if")


def test_a_run_is_shown_live_survives_a_reload_and_ends_measured(page: Any, server: Any) -> None:
    verdict_with(page, "Fits. About")
    server.replay = lambda plan: replay_of(plan, hold=True)
    server.go.clear()
    queue(page)
    page.get_by_role("heading", name=re.compile("Now: second pass, step 2 of 3")).wait_for()
    page.get_by_text("The card is hot and slows down.").first.wait_for()
    assert page.locator(".lp-curve canvas").count() == 1
    assert page.get_by_text("Peaks by phase", exact=True).is_hidden()  # said once, above
    assert page.get_by_role("progressbar").get_attribute("aria-valuenow") == "2"
    tools().picture(page, "during")

    page.evaluate("window.app.extensionManager.sidebarTab.toggleSidebarTab('lowpeak')")
    page.locator(".lowpeak").wait_for(state="detached")
    tools().open_tab(page)
    page.get_by_role("heading", name=re.compile("Now: second pass, step 2 of 3")).wait_for()

    tools().boot(page, server)
    tools().open_tab(page)
    page.get_by_role("heading", name=re.compile("Now: second pass, step 2 of 3")).wait_for()
    assert page.locator(".lp-curve canvas").count() == 1

    server.go.set()
    page.get_by_text("Last run", exact=True).wait_for()
    took = page.locator(".lp-sec", has_text="Last run").first
    took.get_by_text(re.compile("^Took ")).wait_for()
    assert "Second pass: took 10 % longer, VRAM 4 % less, RAM as forecast." in took.inner_text()
    assert took.locator(".lp-measured").count() == 10  # five phases, VRAM and RAM
    assert "grain.safetensors: 648 of 700 tensors bound" in took.inner_text()
    assert page.get_by_role("heading", name=re.compile("^Now")).count() == 0


def test_the_report_is_copied_without_prompt(page: Any, server: Any) -> None:
    run_whole(page, server)
    page.get_by_role("button", name="Copy report").click()
    page.get_by_text("Copied.").wait_for()
    report = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert report["report"]["kernels"]["transformer"]["implementation"] == "triton"
    assert set(report["phases"]["sample_high"]) >= {"forecast", "measured"}
    assert "fox" not in json.dumps(report)


def test_a_failed_run_says_why_and_history_lists_it(page: Any, server: Any) -> None:
    verdict_with(page, "Fits. About")
    run_whole(page, server)
    server.replay = lambda plan: replay_of(plan, fail=True)
    queue(page)
    alert = page.locator(".lowpeak [role=alert]", has_text="Failed")
    alert.wait_for()
    assert page.get_by_text("MeasuredOverrun: second pass used more VRAM").count() == 1
    page.locator("summary", has_text="Past runs").click()
    rows = page.locator(".lowpeak tbody tr")
    rows.filter(has_text="failed").first.wait_for()
    assert rows.filter(has_text="−4 %").filter(has_text="1344 × 768").count() >= 1
    tools().picture(page, "failed")
    page.keyboard.press("Escape")  # ComfyUI's own error dialog


def test_a_forecast_that_fails_can_be_asked_again(page: Any, server: Any) -> None:
    verdict_with(page, "Fits. About")
    server.engine.broken = RequestError("width 7 px is not a multiple of 32", field="width")
    tools().set_widgets(page, "LowpeakSample", {"seconds": 7.0})
    text = verdict_with(page, "No forecast")
    assert "width 7 px is not a multiple of 32" in text
    server.engine.broken = None
    page.get_by_role("button", name="Check again").click()
    verdict_with(page, "Fits. About")


def test_a_graph_without_our_nodes_says_what_to_add(page: Any, server: Any) -> None:
    verdict_with(page, "Fits. About")
    page.evaluate("window.app.loadGraphData({nodes: [], links: [], version: 0.4})")
    verdict_with(page, "holds no Lowpeak Sample")
    assert page.get_by_text("Peaks by phase").first.is_hidden()


CONTRAST = """() => {
    const context = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const rgb = colour => {
        context.clearRect(0, 0, 1, 1);
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data];
    };
    const luminance = ([r, g, b]) => [r, g, b].map(value => value / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = element => {
        for (; element; element = element.parentElement) {
            const colour = rgb(getComputedStyle(element).backgroundColor);
            if (colour[3] > 250) return colour;
        }
        return [255, 255, 255];
    };
    const found = [];
    for (const element of document.querySelectorAll('.lowpeak *')) {
        const own = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
        if (!own || element.tagName === 'STYLE' || !element.checkVisibility()) continue;
        const [a, b] = [rgb(getComputedStyle(element).color), behind(element)].map(luminance);
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        found.push([element.textContent.slice(0, 40), ratio]);
    }
    return found;
}"""


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_text_can_be_read_in_both_themes(page: Any, server: Any, theme: str) -> None:
    page.evaluate(
        "theme => window.app.extensionManager.setting.set('Comfy.ColorPalette', theme)", theme
    )
    page.locator(f".lowpeak[data-theme={theme}]").wait_for()
    verdict_with(page, "Fits. About")
    page.evaluate("document.querySelectorAll('.lowpeak details').forEach(e => (e.open = true))")
    page.locator(".lp-result .lp-verdict").wait_for()
    found = page.evaluate(CONTRAST)
    assert len(found) > 40
    assert [item for item in found if item[1] < 4.5] == []
    tools().picture(page, theme)


def test_every_control_has_a_name(page: Any, server: Any) -> None:
    verdict_with(page, "Fits. About")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll(
            ':is(.lowpeak button, .lowpeak input, .lowpeak select, .lowpeak [role=img])')]
            .filter(e => !(e.getAttribute('aria-label') || e.textContent))
            .map(e => e.outerHTML)"""
    )
    assert nameless == []
    levels = page.evaluate(
        "[...document.querySelectorAll('.lowpeak h2, .lowpeak h3')].map(e => e.tagName)"
    )
    assert levels[0] == "H2" and levels.count("H2") == 1


@pytest.mark.parametrize("width_px", [230, 640])
def test_nothing_is_cut_off_in_a_narrow_or_wide_tab(page: Any, server: Any, width_px: int) -> None:
    verdict_with(page, "Fits. About")
    panel = page.locator(".lowpeak")
    panel.evaluate("(panel, width) => (panel.style.width = `${width}px`)", width_px)
    page.evaluate("document.querySelectorAll('.lowpeak details').forEach(e => (e.open = true))")
    page.locator(".lp-result .lp-verdict").wait_for()
    wide = """panel => [...panel.querySelectorAll("*")].filter(e => e.checkVisibility() &&
        e.getBoundingClientRect().right > panel.getBoundingClientRect().right + 0.5 &&
        !e.closest(".lp-sr")).map(e => e.outerHTML.slice(0, 120))"""
    assert panel.evaluate(wide) == []
    assert panel.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    assert page.locator(".lp-bar:visible").first.bounding_box()["width"] >= 80
    tools().picture(page, f"width-{width_px}")
    panel.evaluate("panel => (panel.style.width = '')")
