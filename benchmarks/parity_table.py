"""Runs the parity tests and writes docs/parity.md: what was compared, with what, and the error.

    .venv/bin/python benchmarks/parity_table.py [--check | --blocks]

A parity test prints rows `PARITY | what | against | error`; the error is max|a-b| / max|b| unless
the row says otherwise. `--check` writes nothing and fails if a row is missing from the page: errors
may wander in the last digits between machines, rows may not disappear. `--blocks` runs nothing: it
writes the page's last section anew, from the kept figures of benchmarks/block_accuracy.py.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "parity.md"
SELECT = "parity or golden"  # some rows are printed by golden tests
BLOCKS = ROOT / "docs" / "benchmarks" / "block-accuracy-h200.json"
BLOCKS_TITLE = "## A block at real width, by format and path of its linears"
COMMAND = ["-m", "pytest", "tests/numeric", "-k", SELECT, "-s", "-q", "-p", "no:cacheprovider"]
ROW = re.compile(r"PARITY \| (.+?) \| (.+?) \| (\S+)\s*$", re.MULTILINE)

HEAD = """# Parity: what was compared, with what, and the error

Written by `benchmarks/parity_table.py` from the rows that the parity and golden tests of
tests/numeric print; do not edit by hand. The error is max|a-b| / max|b| of a tensor, the worst of
all tensors compared, in float32 on a CPU unless the row says otherwise. `recorded` and `golden` are
tensors the tests find through LOWPEAK_GOLDEN; `diffusers` and the other libraries run beside our
code on the same random weights. Every parameter is randomised. Rows of quantised layouts show what
quantising tiny random models costs, not what it costs the published one.
"""


def measure() -> tuple[list[tuple[str, str, str]], str]:
    """Rows (what, against, error) as printed, and pytest's last line. Exits on failure."""
    run = subprocess.run(
        [sys.executable, *COMMAND], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if run.returncode:
        sys.exit(f"the parity tests failed; the page is unchanged\n{run.stdout[-4000:]}")
    rows = list(dict.fromkeys(ROW.findall(run.stdout)))
    return rows, re.sub(r" in [\d.]+s.*", "", run.stdout.strip().splitlines()[-1])


def page(rows: list[tuple[str, str, str]], summary: str) -> str:
    """The page as Markdown."""
    lines = [HEAD, "| what | against | error |", "|---|---|---|"]
    lines += [f"| {what} | {against} | {error} |" for what, against, error in rows]
    return "\n".join([*lines, "", f"Tests: {summary.strip(' =')}.", "", *block_lines()])


def block_lines() -> list[str]:
    """The section of benchmarks/block_accuracy.py's figures, nothing when none are kept."""
    if not BLOCKS.is_file():
        return []
    document = json.loads(BLOCKS.read_text(encoding="utf-8"))
    about = document["about"]
    outliers = about["outliers"]
    versions = {name: about["versions"].get(name, "?") for name in ("torch", "triton")}
    lines = [
        BLOCKS_TITLE,
        f"Written from `docs/benchmarks/{BLOCKS.name}` (`benchmarks/block_accuracy.py`):",
        f"{about['device']}, torch {versions['torch']}, Triton {versions['triton']},",
        f"{about['rows']} rows, random weights, {outliers['channels']} channels of x",
        f"{outliers['gain']:g} times as large and as many shifted by {outliers['offset']:g}, gates",
        "of size one. Cosines of x after the block, and of",
        "what the block adds to x; the last column is against the plain block in float32.",
        "",
        "| weights | path | cosine to bf16 | of what is added | error of what is added |",
        "|---|---|---|---|---|",
    ]
    for row in document["rows"]:
        name = f"| {row['kind']} | {row['path']} |"
        if "failed" in row:
            lines.append(f"{name} did not run: {row['failed'].split(':')[0]} | | |")
            continue
        cosines = f"{row['cosine_to_bf16']:.6f} | {row['cosine_added_to_bf16']:.6f}"
        lines.append(f"{name} {cosines} | {row['relative_error_added']:.1e} |")
    return [*lines, ""]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare rows, write nothing")
    parser.add_argument("--blocks", action="store_true", help="the section of blocks alone")
    asked = parser.parse_args()
    check = asked.check
    if asked.blocks:
        kept = PAGE.read_text(encoding="utf-8").partition(BLOCKS_TITLE)[0]
        PAGE.write_text(f"{kept.rstrip()}\n\n" + "\n".join(block_lines()), encoding="utf-8")
        return
    rows, summary = measure()
    if check:
        known = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
        lost = [what for what, _, _ in rows if f"| {what} |" not in known]
        if lost:
            sys.exit(f"docs/parity.md lacks {len(lost)} rows, run {Path(__file__).name}: {lost}")
        print(f"docs/parity.md holds all {len(rows)} rows")
        return
    PAGE.write_text(page(rows, summary), encoding="utf-8")
    print(f"{len(rows)} rows -> {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
