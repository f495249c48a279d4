"""A whole request at full size on synthetic weights, cold and warm, each against its plan.

    python benchmarks/light_run.py --models DIR --out OUT --vram-gib 8 --ram-gib 32

Stages run in worker processes as in `lowpeak generate`: the prompt; then one worker samples twice,
first with every block on the disk (`cold`; --cold first stops it behind the first pass), then with
the blocks that the first run left in host memory (`warm`), as the ComfyUI nodes do; then another
decodes. Every stage prints as it goes and leaves OUT/light-cold.json and .svg, light-warm.json and
.svg, so that a time limit takes only what comes behind it. --warm runs a one-block transformer
before, so that kernels are compiled. --size tiny tries the script itself on a CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from lowpeak.engine.events import Event
from lowpeak.engine.files import RunFiles
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.request import Request
from lowpeak.engine.run import RunOptions, run_request
from lowpeak.engine.timeline import timeline, timeline_svg
from lowpeak.engine.units import GIB
from lowpeak.engine.worker.protocol import request_from_json, request_to_json
from lowpeak.engine.worker.stages import Story
from lowpeak.engine.worker.supervisor import Worker
from lowpeak.engine.worker.tasks import options_to_json

PROMPT = "A red fox trots through fresh snow at dawn, breath steaming. Soft wind, a distant bell."
STARTED = time.perf_counter()
STAGE = "lowpeak.benchmarks.light_run:stage"
PATHS = ("checkpoint", "out", "resume")
KEPT: dict[str, Any] = {}  # in a worker: the store of the last run, memory of the first


def say(what: str) -> None:
    """Progress with the seconds since the start."""
    print(f"{time.perf_counter() - STARTED:7.1f} s  {what}", flush=True)


def stage(arguments: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """In a worker: one stage; blocks it leaves in host memory serve the next one."""
    from lowpeak.engine import run
    from lowpeak.engine.meter import resident_bytes
    from lowpeak.engine.models import ModelSet

    KEPT.setdefault("bytes", resident_bytes())
    run.resident_bytes = lambda: KEPT["bytes"]  # what is kept is the run's own, not beside it
    original = KEPT.setdefault("denoiser", ModelSet.denoiser)

    @contextmanager
    def keeping(self: ModelSet, *given: Any) -> Iterator[Any]:
        with original(self, *given, KEPT.pop("store", None), True) as denoisers:
            yield denoisers
            KEPT["store"] = denoisers.take_store()

    ModelSet.denoiser = keeping  # type: ignore[assignment, method-assign]
    fields = dict(arguments["options"])
    fields.update({name: None if fields[name] is None else Path(fields[name]) for name in PATHS})
    report = run_request(request_from_json(arguments["request"]), RunOptions(**fields), context)
    if arguments.get("last") and KEPT.get("store") is not None:
        began_unix, began = time.time(), time.perf_counter()
        KEPT.pop("store").close()
        report.add_span("give back the blocks", "", began_unix, time.perf_counter() - began)
    return report.as_json()


def show(event: Event) -> None:
    """A line for every step and every measured phase."""
    if event.kind == "progress" and event.step:
        say(f"{event.phase} {event.step}/{event.steps}, {event.seconds or 0:.2f} s")
    elif event.kind == "measured":
        peaks = [event.vram_peak_bytes or 0, event.ram_peak_bytes or 0]
        vram, ram = (f"{value / GIB:.2f}" for value in peaks)
        say(f"{event.phase}: {event.seconds:.2f} s, VRAM {vram} GiB, RAM {ram} GiB")
    elif event.kind == "notice":
        say(event.message)


def run_stage(
    worker: Worker, request: Request, options: RunOptions, story: Story, *, last: bool = True
) -> None:
    """One stage in `worker`; its report goes behind the story's."""
    asked, begun = {"request": request_to_json(request), "last": last}, time.time()
    found = worker.run(STAGE, {**asked, "options": options_to_json(options)}, on_event=show)
    started = found.get("started_unix") or begun
    wait = {"name": "worker starts, imports", "phase": "", "started_unix": begun}
    found["spans"] = [{**wait, "seconds": max(0.0, started - begun)}, *found.get("spans", ())]
    story.add(found)


@contextmanager
def worker_of(story: Story) -> Iterator[Worker]:
    """A worker for some stages; how long it took to end goes into the story."""
    with Worker() as worker:
        yield worker
        began = time.time()
    if story.report:
        end = {"name": "worker ends", "phase": "", "started_unix": began}
        story.report["spans"].append({**end, "seconds": time.time() - began})


def keep(out: Path, name: str, story: Story, failure: str = "") -> None:
    """The report and its timeline as JSON, the picture beside it; what counts is printed."""
    document: dict[str, Any] = {"command": " ".join(sys.argv), "failure": failure}
    if story.report:
        report = story.report
        document |= {"timeline": timeline(report), "report": report}
        (out / f"{name}.svg").write_text(timeline_svg(report), encoding="utf-8")
        found = document["timeline"]
        say(f"{name}: sampling {found['sampling_seconds'] or 0:.2f} s")
        for item in report["phases"]:
            measured, plan = item["measured"], item["forecast"] or {}
            steps = " ".join(f"{value:.2f}" for value in measured["step_seconds"])
            peaks = ", ".join(
                f"{axis} {(measured[key] or 0) / GIB:.2f} of {(plan.get(key) or 0) / GIB:.2f}"
                for axis, key in (("VRAM", "vram_peak_bytes"), ("RAM", "ram_peak_bytes"))
            )
            print(f"    {item['phase']:12s}{measured['seconds']:7.2f} s  {peaks}  {steps}")
        for gap in found["gaps"]:
            spent = ", ".join(f"{name} {value:.2f}" for name, value in gap["spent_on"].items())
            print(f"    gap at {gap['start']:.1f} s, {gap['seconds']:.2f} s: {spent}", flush=True)
    (out / f"{name}.json").write_text(json.dumps(document, indent=1), encoding="utf-8")


def measure(request: Request, options: RunOptions, out: Path, cold: str) -> None:
    """Both runs; what is finished is kept whatever comes behind it. cold: first, all or none."""
    stories = {"light-cold": Story(), "light-warm": Story()}
    again = options.out.with_name("again.mp4")

    def resumed(file: Path, stop_after: str | None) -> RunOptions:
        return replace(options, out=file, resume=options.out, stop_after=stop_after)

    with worker_of(stories["light-cold"]) as worker:
        run_stage(worker, request, replace(options, stop_after="encode"), stories["light-cold"])
    say("encoded")
    with worker_of(stories["light-warm"]) as worker:
        if cold != "none":
            stop = "first" if cold == "first" else "sample"
            first = replace(resumed(options.out.with_name("cold.mp4"), stop), resume=options.out)
            run_stage(worker, request, first, stories["light-cold"], last=False)
            keep(out, "light-cold", stories["light-cold"])
        run_stage(worker, request, resumed(again, "sample"), stories["light-warm"])
        keep(out, "light-warm", stories["light-warm"])
    with Worker() as worker:
        finish = replace(resumed(again, None), resume=again)
        run_stage(worker, request, finish, stories["light-warm"])
        keep(out, "light-warm", stories["light-warm"])


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--size", default="full")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--width", type=int, default=1344)
    parser.add_argument("--height", type=int, default=768)
    parser.add_argument("--frames", type=int, default=243)
    parser.add_argument("--quality", default="light")
    parser.add_argument("--vram-gib", type=float)
    parser.add_argument("--ram-gib", type=float)
    parser.add_argument("--cold", choices=("first", "all", "none"), default="first")
    parser.add_argument("--warm", action="store_true")
    given = parser.parse_args()
    from lowpeak.benchmarks.light_models import prepare

    given.out.mkdir(parents=True, exist_ok=True)
    given.models.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a time limit ends it in good order
    folder = prepare(given.models, given.size, given.device)
    say("models are there")
    geometry = Geometry(given.width, given.height, given.frames)
    request = Request(geometry, prompt=PROMPT, quality=given.quality, seed=7)
    options = RunOptions(
        checkpoint=folder, out=given.models / "light.mp4", vram_gib=given.vram_gib,
        ram_gib=given.ram_gib, device=given.device,
    )  # fmt: skip
    try:
        if given.warm:
            few = prepare(given.models, given.size, given.device, blocks=1)
            home = os.environ.get("LOWPEAK_HOME", "")
            os.environ["LOWPEAK_HOME"] = str(given.models / "home")  # it teaches the plan nothing
            with Worker() as worker:
                single = replace(options, checkpoint=few, stop_after="sample")
                run_stage(worker, request, single, Story())
            os.environ["LOWPEAK_HOME"] = home or str(given.models / "home-2")
            for file in RunFiles(options.out).present().values():
                (given.models / file).unlink()
            say("kernels are compiled")
        measure(request, options, given.out, given.cold)
    except BaseException as failed:  # the border of the script: what was measured is kept
        traceback.print_exc()
        print(getattr(failed, "trace", ""), file=sys.stderr)
        failure = f"{type(failed).__name__}: {failed}"
        (given.out / "light-failure.txt").write_text(failure, encoding="utf-8")
        say(failure)
        return 1
    say("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
