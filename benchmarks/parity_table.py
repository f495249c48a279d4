"""Runs the parity tests and writes docs/parity.md: what was compared, with what, and the error.

    .venv/bin/python benchmarks/parity_table.py [--check]

A parity test prints rows `PARITY | what | against | error`; the error is max|a-b| / max|b| unless
the row says otherwise. `--check` writes nothing and fails if a row is missing from the page: errors
may wander in the last digits between machines, rows may not disappear.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "parity.md"
SELECT = "parity or golden"  # some rows are printed by golden tests
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
    return "\n".join([*lines, "", f"Tests: {summary.strip(' =')}.", ""])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare rows, write nothing")
    check = parser.parse_args().check
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
