"""The panel in a browser, each test on a stage of its own, against the pack's real routes."""
# ruff: noqa: RUF001  (the panel writes real multiplication and minus signs)

from __future__ import annotations

import functools
import json
import re
from typing import Any

import pytest
from browser import tools
from browser.host import BrowserHost
from browser.replays import replay_of
from browser.tools import verdict_with

from lowpeak.engine.errors import RequestError

pytest.importorskip("playwright.sync_api", reason="playwright is missing")
from playwright.sync_api import expect

pytestmark = pytest.mark.timeout(600)


def run_whole(page: Any, host: BrowserHost, **how: Any) -> None:
    """Queue the graph and wait until the panel shows its measured end."""
    before = len(host.prompts)
    host.replay = functools.partial(replay_of, **how)
    tools.queue(page)
    expect(page.locator(f".lp-last[data-run='replay-{before + 1}']")).to_be_visible()


def test_forecast_bars_appear_with_the_planners_numbers(page: Any, host: BrowserHost) -> None:
    text = verdict_with(page, "Fits. About")
    assert "1344 × 768 · 5.2 s" in text and "of 8.0 GiB VRAM" in text
    names = page.locator(".lp-row .lp-name").all_inner_texts()
    assert names == ["Encode", "First pass", "Upscale", "Second pass", "Decode"]
    answer = page.evaluate(
        """async () => (await fetch('/lowpeak/forecast', {method: 'POST',
            body: JSON.stringify({prompt: (await window.app.graphToPrompt()).output})})).json()"""
    )
    high = next(item for item in answer["phases"] if item["phase"] == "sample_high")
    wanted = f"Second pass, VRAM: forecast {high['vram_peak_bytes'] / 2**30:.2f} GiB"
    assert page.get_by_role("img", name=wanted).count() == 1


def test_changed_widgets_are_forecast_once_they_rest(page: Any, host: BrowserHost) -> None:
    before = host.forecasts
    tools.set_widgets(page, *({"width": w, "height": 544} for w in (512, 640, 768, 896, 960)))
    verdict_with(page, "960 × 544")
    assert host.forecasts - before == 1


def test_a_refusal_offers_a_size_and_one_key_takes_it(page: Any, host: BrowserHost) -> None:
    host.engine.use(4)
    tools.set_widgets(page, {"width": 1920, "height": 1088, "seconds": 15.0})
    text = verdict_with(page, "Does not fit: VRAM is short by")
    assert "RAM would be enough" in text
    assert page.locator(".lp-excess").count() == text.count(" needs ") >= 1
    use = page.get_by_role("button", name=re.compile("Use a size that fits")).first
    sides = re.search(r"(\d+) × (\d+)", use.get_attribute("aria-label") or "")
    assert sides
    use.focus()
    page.keyboard.press("Enter")
    verdict_with(page, "Fits. About")
    assert [tools.widget(page, name) for name in ("width", "height")] == [*map(int, sides.groups())]


def test_every_block_is_shown_where_it_waits(page: Any, host: BrowserHost) -> None:
    host.engine.use(12, ram_gib=16)
    tools.set_widgets(page, {"width": 1920, "height": 1088, "seconds": 15.0})
    verdict_with(page, "1920 × 1088")
    places = json.loads(
        page.evaluate(
            """async () => JSON.stringify((await (await fetch('/lowpeak/forecast', {method: 'POST',
                body: JSON.stringify({prompt: (await window.app.graphToPrompt()).output})})).json())
                .phases.find(phase => phase.phase === 'sample_high').placement)"""
        )
    )
    counts = {"card": "resident_blocks", "ram": "pinned_blocks", "disk": "disk_blocks"}
    kinds = {"card": ".lp-on-card", "ram": ".lp-in-ram", "disk": ".lp-on-disk"}
    for kind, name in counts.items():
        expect(page.locator(f".lp-blocks {kinds[kind]}")).to_have_count(places[name])
    assert places["disk_blocks"] and places["pinned_blocks"], "the machine was meant to be mixed"
    cells = page.locator(".lp-blocks i")
    titles = cells.evaluate_all("all => all.map(e => e.title)")
    assert [title.split(":")[0] for title in titles] == [f"Block {n + 1}" for n in range(50)]
    assert (
        sum(title.endswith("read from disk each step") for title in titles)
        == (places["disk_blocks"])
    )
    expect(page.get_by_text("Where the 50 blocks wait")).to_be_visible()


def test_what_if_answers_for_other_machines_by_keyboard(page: Any, host: BrowserHost) -> None:
    page.get_by_text("What if", exact=True).focus()
    page.keyboard.press("Enter")
    result = page.locator(".lp-result")
    expect(result).to_contain_text("of 8.0 GiB VRAM")
    expect(page.locator(".lp-heat .lp-waits")).to_have_count(0)  # its cells name cards too
    page.get_by_label("Card", exact=True).select_option("rtx-5090")
    expect(result).to_contain_text("of 32.0 GiB VRAM")
    slider = page.get_by_label("VRAM of the other machine", exact=True)
    expect(slider).to_have_attribute("aria-valuetext", "32 GiB")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(result).to_contain_text("of 24.0 GiB VRAM")
    expect(page.locator(".lp-head")).to_contain_text("8 GiB")  # this machine is still this one


def test_the_capacity_map_says_what_fits_and_sets_the_sliders(page: Any, host: BrowserHost) -> None:
    tools.set_widgets(page, {"width": 1920, "height": 1088, "seconds": 15.0})
    verdict_with(page, "1920 × 1088")
    tools.unfold(page)
    grid = page.get_by_role("grid", name="Time by VRAM and RAM")
    expect(grid.locator(".lp-waits")).to_have_count(0)
    assert grid.get_by_role("gridcell").count() == 48
    assert grid.locator(".lp-here").count() == 1
    short = grid.get_by_role("gridcell", name=re.compile("^4 GiB VRAM, 64 GiB RAM: does not fit"))
    assert "VRAM is short" in short.get_attribute("aria-label")
    assert grid.get_by_role("gridcell", name=re.compile("^32 GiB VRAM, 64.*about .*min")).count()
    grid.locator("[tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused.startswith("8 GiB VRAM, 32 GiB RAM: ")
    expect(page.get_by_label("VRAM of the other machine", exact=True)).to_have_attribute(
        "aria-valuetext", "8 GiB"
    )
    expect(page.get_by_label("RAM of the other machine", exact=True)).to_have_attribute(
        "aria-valuetext", "32 GiB"
    )
    expect(page.locator(".lp-result")).to_contain_text("of 8.0 GiB VRAM")


def test_a_run_shows_whose_memory_it_is_and_survives_the_closed_tab(
    page: Any, host: BrowserHost
) -> None:
    host.replay = functools.partial(replay_of, hold=True)
    tools.queue(page)
    now = page.get_by_role("heading", name=re.compile("Now: second pass, step 2 of 3"))
    expect(now).to_be_visible()
    expect(page.get_by_text("The card is hot and slows down.").first).to_be_visible()
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "2")
    for axis, end in (("VRAM", "8.0"), ("RAM", "32.0")):
        curve = page.get_by_role("img", name=re.compile(f"^{axis} of this run"))
        said = curve.get_attribute("aria-label")
        assert re.search(
            r"Lowpeak \d+\.\d GiB, other programs \d\.\d GiB, can be freed \d\.\d GiB", said
        )
        assert said.endswith(f"of {end} GiB")
        assert curve.locator("canvas").count() == 1
    expect(page.get_by_text("Peaks by phase", exact=True)).to_be_hidden()  # said once, above
    tools.toggle_tab(page)
    expect(page.locator(".lowpeak")).to_have_count(0)
    tools.open_tab(page)
    expect(now).to_be_visible()
    host.go.set()
    expect(page.get_by_text(re.compile("^Took "))).to_be_visible()
    expect(now).to_have_count(0)


def test_the_end_is_compared_with_the_forecast_in_bars_and_words(
    page: Any, host: BrowserHost
) -> None:
    run_whole(page, host)
    last = page.locator(".lp-last")
    expect(last).to_contain_text("Second pass: took 10 % longer, VRAM 4 % less, RAM as forecast.")
    expect(last.locator(".lp-measured")).to_have_count(10)  # five phases, VRAM and RAM
    expect(last).to_contain_text("film-grain.safetensors: 700 of 700 tensors bound")
    expect(last.locator(".lp-lora.lp-bad")).to_have_text(
        "turbo.safetensors: 648 of 700 tensors bound"
    )
    expect(last).to_contain_text("52 left out: AdaLN targets need the original projections")
    last.locator("summary", has_text="Kernels used").click()
    assert last.locator(".lp-kernels li").all_inner_texts() == [
        "transformer: triton",
        "window_softmax: sage (fastest that passed the accuracy probe)",
        "gemm: triton-int8",
        "not reference: allowed below 4,096 rows",
        "Changes the last bits of the result: window_softmax",
    ]


def test_the_report_is_copied_without_prompt(page: Any, host: BrowserHost) -> None:
    run_whole(page, host)
    page.get_by_role("button", name="Copy report").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    report = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert report["report"]["kernels"]["transformer"]["implementation"] == "triton"
    assert set(report["phases"]["sample_high"]) >= {"forecast", "measured"}
    assert "fox" not in json.dumps(report)


def test_a_failed_run_says_why_and_history_lists_it(page: Any, host: BrowserHost) -> None:
    run_whole(page, host, slower=1.2)
    run_whole(page, host, slower=1.1)
    run_whole(page, host, fail=True)
    expect(page.locator(".lp-last [role=alert]")).to_have_text("Failed")
    expect(page.get_by_text("MeasuredOverrun: second pass used more VRAM")).to_be_visible()
    page.locator("summary", has_text="Past runs").click()
    rows = page.locator(".lowpeak table:not([role]) tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("failed")
    expect(rows.nth(1)).to_contain_text("−4 %")
    expect(page.locator(".lp-errors")).to_contain_text(
        "Measured against forecast over 2 runs. Newest: time +10 %, VRAM −4 %."
    )
    assert page.locator(".lp-errors polyline").count() == 3


def test_a_forecast_that_fails_can_be_asked_again(page: Any, host: BrowserHost) -> None:
    host.engine.broken = RequestError("width 7 px is not a multiple of 32", field="width")
    tools.set_widgets(page, {"seconds": 7.0})
    assert "width 7 px is not a multiple of 32" in verdict_with(page, "No forecast")
    host.engine.broken = None
    page.get_by_role("button", name="Check again").click()
    verdict_with(page, "Fits. About")


def test_a_graph_without_our_nodes_says_what_to_add(page: Any) -> None:
    page.evaluate("window.app.load({})")
    verdict_with(page, "holds no Lowpeak Sample")
    expect(page.get_by_text("Peaks by phase").first).to_be_hidden()


def test_the_panel_speaks_chinese_and_follows_the_setting(stage: Any) -> None:
    page = stage(locale="zh")
    verdict_with(page, "放得下，约")
    run_whole(page, stage.host)
    page.evaluate("document.querySelectorAll('.lowpeak details').forEach(e => (e.open = true))")
    page.locator(".lp-result .lp-verdict").wait_for()
    expect(page.locator(".lp-heat .lp-waits")).to_have_count(0)
    expect(
        page.locator(".lowpeak li:not([lang])", has_text="放得下的最快安排").first
    ).to_be_visible()
    tools.panel_picture(page, "chinese")
    left = page.evaluate(
        """() => [...document.querySelectorAll('.lowpeak *')].filter(e => e.checkVisibility() &&
            !e.closest('[lang=en], style, option, .lp-kernels, .lp-lora, .lp-lora ~ *'))
            .flatMap(e => [e.ariaLabel, e.title, ...[...e.childNodes].filter(n => n.nodeType === 3)
                .map(n => n.data)]).filter(text => /[A-Za-z]{3}/.test(
                (text ?? '').replace(/Lowpeak|LoRA|GiB|JSON|NVIDIA GeForce RTX|light/g, '')))"""
    )
    assert left == []
    tools.set_setting(page, "Comfy.Locale", "en")
    verdict_with(page, "Fits. About")


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_text_can_be_read_in_both_themes(stage: Any, theme: str) -> None:
    page = stage(theme=theme)
    page.locator(f".lowpeak[data-theme={theme}]").wait_for()
    verdict_with(page, "Fits. About")
    run_whole(page, stage.host)
    tools.unfold(page)
    expect(page.locator(".lp-heat .lp-waits")).to_have_count(0)
    found = tools.contrasts(page)
    assert len(found) > 100
    assert [item for item in found if item[1] < 4.5] == []


def test_every_control_has_a_name_and_headings_are_in_order(page: Any, host: BrowserHost) -> None:
    run_whole(page, host)
    tools.unfold(page)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll(':is(.lowpeak button, .lowpeak input, ' +
            '.lowpeak select, .lowpeak [role=img], .lowpeak [role=grid], .lowpeak [tabindex])')]
            .filter(e => !(e.ariaLabel || e.getAttribute('aria-labelledby') || e.textContent))
            .map(e => e.outerHTML)"""
    )
    assert nameless == []
    levels = page.locator(".lowpeak :is(h2, h3, h4)").evaluate_all("all => all.map(e => e.tagName)")
    assert levels[0] == "H2" and levels.count("H2") == 1


def test_tab_reaches_every_control_and_the_focus_is_seen(page: Any, host: BrowserHost) -> None:
    run_whole(page, host)
    tools.unfold(page)
    expect(page.locator(".lp-heat .lp-waits")).to_have_count(0)
    wanted = page.locator(
        ".lowpeak :is(button, summary, input, select, [tabindex='0']):visible"
    ).count()
    page.evaluate("document.activeElement.blur()")
    seen = set()
    for _ in range(wanted + 5):
        page.keyboard.press("Tab")
        at = page.evaluate(
            """() => { const e = document.activeElement;
                return e.closest('.lowpeak') && [[...document.querySelectorAll('.lowpeak *')]
                    .indexOf(e), getComputedStyle(e).outlineStyle] }"""
        )
        if at:
            assert at[1] != "none"
            seen.add(at[0])
    assert len(seen) >= wanted


@pytest.mark.parametrize("width_px", [230, 640])
def test_nothing_is_cut_off_in_a_narrow_or_wide_tab(stage: Any, width_px: int) -> None:
    page = stage()
    run_whole(page, stage.host)
    tools.set_widgets(page, {"width": 1920, "height": 1088, "seconds": 15.0})  # longer words
    verdict_with(page, "1920 × 1088")
    panel = page.locator(".lowpeak")
    panel.evaluate("(panel, width) => (panel.style.width = `${width}px`)", width_px)
    tools.unfold(page)
    expect(page.locator(".lp-heat .lp-waits")).to_have_count(0)
    wide = """panel => [...panel.querySelectorAll("*")].filter(e => e.checkVisibility() &&
        e.getBoundingClientRect().right > panel.getBoundingClientRect().right + 0.5 &&
        !e.closest(".lp-sr")).map(e => e.outerHTML.slice(0, 120))"""
    assert panel.evaluate(wide) == []
    assert panel.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    cut = panel.locator(".lp-heat td:visible").evaluate_all(
        "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"
    )
    assert cut == []
    assert page.locator(".lp-bar:visible").first.bounding_box()["width"] >= 80
    tools.panel_picture(page, f"width-{width_px}")
