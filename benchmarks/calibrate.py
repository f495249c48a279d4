"""Bench rows in, calibration rows out, and the tables of forecasts against measurements.

    python benchmarks/calibrate.py ROWS.json ... [--into engine/calibration/h200.toml]
        [--table docs/benchmarks/forecasts-h200.md] [--keep docs/benchmarks/forecasts-h200.json]

Files are lists as `lowpeak bench forecast`, `lowpeak bench step` and step_matrix.py write them, any
number of them. Rows named `step` and `calibration` teach; held-out rows and floors never do, nor
does any row of a held-out size, any of a small size from before there were row groups, or any that
was forced to an attention (--attention NAME lets those of that name teach, and no others).

--seconds FILE ...: rows of an older engine with today's kernels, which teach time alone.
Without options it only prints. --into replaces the rows it learned in a calibration file. --table
writes forecast beside measurement as Markdown: as it was said before each run, and as the new
constants say. --keep writes the rows themselves, one a case, the last one run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lowpeak.engine.heldout_cases import USES, teaches
from lowpeak.engine.heldout_table import held_out_table
from lowpeak.engine.planner.calibration import Calibration, Row, choose_calibration
from lowpeak.engine.planner.compare import (
    compared_table,
    forecast_table,
    replace_tables,
    same_groups,
    usable,
)
from lowpeak.engine.planner.fitting import left_out, margin_rows, measured_rows
from lowpeak.engine.planner.types import HardwareSnapshot, ModelFacts

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Lesson:
    """What rows teach. shown: rows that teach nothing, each with why."""

    rows: Rows
    teaching: Rows
    shown: Sequence[tuple[str, str]]
    before: Calibration
    found: Sequence[Row]

    @property
    def after(self) -> Calibration:
        """The constants with what was learned."""
        return self.before.with_rows(self.found)

    @property
    def device(self) -> str:
        """The card that all rows are of."""
        return str(self.rows[0]["device"])


def read_files(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """The rows of all files, of failed cases too. SystemExit names a file that holds none."""
    rows: list[dict[str, Any]] = []
    for path in paths:
        try:
            loaded = json.loads(path.read_text())
        except (OSError, ValueError) as damaged:
            raise SystemExit(f"{path}: {damaged}") from damaged
        rows += loaded if isinstance(loaded, list) else [loaded]
    return rows


def seconds_alone(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without its peaks: of an engine whose kernels are today's and whose memory is not."""
    dropped = ("peak_bytes", "context_bytes", "after_bytes", "growth_bytes", "bytes_per_second")
    return {key: value for key, value in row.items() if not key.endswith(dropped)}


def why_not(row: Mapping[str, Any], attention: str | None) -> str:
    """Why a finished row teaches nothing; empty for one that teaches."""
    if row.get("use", "step") not in USES:
        return f"use {row['use']!r} is unknown"
    if not teaches(row):
        return "held out, by name or by size"
    if not same_groups(row):
        return "run before small pictures went in groups"
    if row.get("attention") != attention:
        return f"attention {row.get('attention') or 'not forced'}"
    return ""


def learn(
    rows: Iterable[Mapping[str, Any]],
    attention: str | None = None,
    before: Calibration | None = None,
) -> Lesson:
    """Sort rows and fit those that teach. SystemExit when none may, or when cards differ."""
    done = usable(rows)
    reasons = [why_not(row, attention) for row in done]
    teaching = [row for row, why in zip(done, reasons, strict=True) if not why]
    shown = [(str(row.get("case", "")), why) for row, why in zip(done, reasons, strict=True) if why]
    if not teaching:
        raise SystemExit("no finished step rows that may teach in these files")
    devices = sorted({str(row["device"]) for row in done})
    if len(devices) > 1:
        raise SystemExit(f"rows of several cards: {', '.join(devices)}")
    if before is None:
        before = choose_calibration(HardwareSnapshot("linux", devices[0], None, 0, 0, 0, 0))
    facts = ModelFacts()
    found = [*measured_rows(teaching, facts, before), *margin_rows(teaching, facts, before)]
    return Lesson(done, teaching, shown, before, found)


def last_of_each(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """One row a case and attention: the last finished one, else the last."""
    kept: dict[Any, Mapping[str, Any]] = {}
    for row in rows:
        key = row.get("case"), row.get("attention")
        if key not in kept or "error" not in row or "error" in kept[key]:
            kept[key] = row
    return list(kept.values())


def command_of(rows: Rows) -> str:
    """The command that made rows, without the folders of the machine that it ran on."""
    cases = dict.fromkeys(str(row.get("case", "")) for row in rows if row["bench"] == "forecast")
    if cases:
        return f"lowpeak bench forecast --cases {','.join(cases)}"
    words = str(rows[0].get("command", "lowpeak bench step")).replace("\\", "/").split()
    return " ".join(word.rpartition("/")[2] or word for word in words)


def kept_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows to keep: one a case, with the command that anybody can give."""
    return [
        {**row, "command": command_of([row])} if "command" in row else dict(row)
        for row in last_of_each(rows)
    ]


def tables_text(every: Iterable[Mapping[str, Any]], lesson: Lesson) -> str:
    """Markdown: forecasts as they were made, and as the learned constants make them."""
    campaign = [row for row in last_of_each(every) if row.get("bench") == "forecast"]
    apart = [row for row in campaign if not teaches(row) or row.get("floor")]
    finished = [row for row in apart if "error" not in row]
    lines = [
        f"# Forecast and measurement, {lesson.device}",
        "",
        f"{len(lesson.teaching)} rows taught the constants of `engine/calibration`; held-out rows "
        "and floors did not, unless they are named calibration. Ratios are forecast / measured; "
        "wanted are VRAM 1.00 to 1.06, RAM 1.00 to 1.12, time 0.91 to 1.11.",
        "",
        "## As it was said before each run",
        held_out_table(apart) if apart else "No such row.",
        "",
        "## The same runs with the constants of now",
        forecast_table(finished, ModelFacts(), lesson.after),
        "",
        "## Rows that taught, with the constants of now",
        forecast_table(lesson.teaching, ModelFacts(), lesson.after),
        "",
    ]
    if several_sizes(lesson.teaching):
        found = left_out(lesson.teaching, ModelFacts(), lesson.before)
        lines += ["## Each size that taught, from the others alone", compared_table(found), ""]
    return "\n".join(lines)


def several_sizes(rows: Rows) -> bool:
    """Whether one size can be left out."""
    return len({(row["width"], row["height"], row["frames"]) for row in rows}) > 1


def written_into(text: str, lesson: Lesson, date: str) -> str:
    """Calibration TOML with the learned rows in it."""
    versions = lesson.teaching[0].get("versions", {})
    text = replace_tables(
        text,
        lesson.found,
        device=lesson.device,
        command=command_of(lesson.teaching),
        date=date,
        software=str(versions.get("torch", "")),
    )
    tomllib.loads(text)
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what rows say; write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--into", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--attention")
    parser.add_argument("--seconds", type=Path, nargs="+", default=[])
    options = parser.parse_args(arguments)
    every = read_files(options.rows)
    lesson = learn([*every, *map(seconds_alone, read_files(options.seconds))], options.attention)
    print(f"{len(lesson.teaching)} rows teach; {len(lesson.shown)} are shown only:")
    print("".join(f"  {case}: {why}\n" for case, why in lesson.shown))
    print("With the constants of before:\n" + _priced(lesson, lesson.before) + "\n")
    text = tables_text(every, lesson)
    print(text)
    for row in lesson.found:
        known = lesson.before.rows.get(row.name)
        was = "new" if known is None else f"{known.value:.6g}"
        print(f"{row.name}: {was} -> {row.value:.6g} {row.unit} ({row.source})")
    if options.into:
        date = datetime.date.today().isoformat()
        options.into.write_text(written_into(options.into.read_text(), lesson, date))
    if options.table:
        options.table.write_text(text)
    if options.keep:
        options.keep.write_text(json.dumps(kept_rows(every), indent=1) + "\n")


def _priced(lesson: Lesson, constants: Calibration) -> str:
    return forecast_table(lesson.rows, ModelFacts(), constants)


if __name__ == "__main__":
    main()
