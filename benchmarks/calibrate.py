"""Bench rows in, calibration rows out, and the table of forecasts against measurements.

    .venv/bin/python benchmarks/calibrate.py ROWS.json ... [--into engine/calibration/h200.toml]

Without --into it only prints. Rows are lists as `lowpeak bench step`, `lowpeak bench forecast` and
step_matrix.py write them. Held-out rows and floors are shown and teach nothing, nor does any row
of a held-out size.
"""

from __future__ import annotations

import argparse
import datetime
import json
import tomllib
from pathlib import Path

from lowpeak.engine.heldout_cases import teaches
from lowpeak.engine.planner.calibration import choose_calibration
from lowpeak.engine.planner.compare import compared_table, forecast_table, replace_tables, usable
from lowpeak.engine.planner.fitting import left_out, margin_rows, measured_rows
from lowpeak.engine.planner.types import HardwareSnapshot, ModelFacts


def main() -> None:
    """Print both tables; write the rows when asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--into", type=Path)
    options = parser.parse_args()
    loaded = [json.loads(path.read_text()) for path in options.rows]
    rows = usable(row for item in loaded for row in (item if isinstance(item, list) else [item]))
    teaching = [row for row in rows if teaches(row)]
    if not teaching:
        raise SystemExit("no finished step rows that may teach in these files")
    left = [str(row.get("case", "")) for row in rows if not teaches(row)]
    print(f"{len(teaching)} rows teach; shown only: {', '.join(left) or 'none'}\n")
    device, facts = rows[0]["device"], ModelFacts()
    before = choose_calibration(HardwareSnapshot("linux", device, None, 0, 0, 0, 0))
    found = measured_rows(teaching, facts, before)
    found += margin_rows(teaching, facts, before)
    after = before.with_values(**{row.name.replace(".", "__", 1): row.value for row in found})
    print("Before:\n" + forecast_table(rows, facts, before))
    print("\nAfter:\n" + forecast_table(rows, facts, after))
    if len({(row["width"], row["height"], row["frames"]) for row in teaching}) > 1:
        print("\nEach size from the others:\n" + compared_table(left_out(teaching, facts, before)))
    for row in found:
        print(f"{row.name}: {before[row.name]:.6g} -> {row.value:.6g} {row.unit} ({row.source})")
    if options.into:
        text = replace_tables(
            options.into.read_text(),
            found,
            device=device,
            command=str(rows[0].get("command", "lowpeak bench step")).replace("\\", "/"),
            date=datetime.date.today().isoformat(),
            software=str(rows[0].get("versions", {}).get("torch", "")),
        )
        tomllib.loads(text)
        options.into.write_text(text)


if __name__ == "__main__":
    main()
