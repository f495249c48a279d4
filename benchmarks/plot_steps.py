"""Step time against the VRAM budget: ours measured, FreeVideo as published. Writes an SVG.

    python benchmarks/plot_steps.py docs/benchmarks/forecasts-h200.json \\
        docs/benchmarks/step-h200.json docs/benchmarks/step-h200-first-engine.json
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP = 720, 380, 56, 52
ROOT = Path(__file__).resolve().parent.parent
PUBLISHED = ROOT / "tests" / "data" / "published_capacity.csv"
STYLE = """
 svg { --ink:#1f2328; --soft:#8b949e; --ours:#0969da; --theirs:#bc4c00; --paper:#fff }
 @media (prefers-color-scheme: dark) {
  svg { --ink:#e6edf3; --soft:#6e7681; --ours:#58a6ff; --theirs:#f0883e; --paper:#0d1117 } }
 text { font: 12px system-ui, sans-serif; fill: var(--ink) } .soft { fill: var(--soft) }
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path, nargs="+", help="newest first: it wins over older rows")
    parser.add_argument("--published", type=Path, default=PUBLISHED)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks" / "steps.svg")
    options = parser.parse_args()
    found: dict[tuple[float, float], dict] = {}
    for file in options.rows:
        for row in json.loads(file.read_text()):
            if "seconds_per_step" not in row or row.get("attention"):
                continue  # failed, or forced to a kernel that not everybody has
            if (row["width"], row["height"], row["frames"]) == (1344, 768, 243):
                found.setdefault((row["vram_gib"] or 32.0, row["ram_gib"] or 32.0), row)
    rows = list(found.values())
    ours = [
        (row["vram_gib"] or 32.0, row["ram_gib"] or 32.0, row["seconds_per_step"]) for row in rows
    ]
    with options.published.open() as file:
        published = [
            (float(r["vram_gib"]), float(r["ram_gib"]), float(r["seconds_per_step"]))
            for r in csv.DictReader(file)
        ]

    def x(gib: float) -> float:
        return LEFT + (gib - 3) / 30 * (WIDTH - LEFT - 20)

    def y(seconds: float) -> float:
        return HEIGHT - 40 - (seconds - 6) / 10 * (HEIGHT - 40 - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>Seconds a step against the VRAM budget</title><style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="var(--paper)"/>',
        '<text x="56" y="20" font-weight="600">Seconds a step, 1344x768, 243 frames, one H200'
        '</text><text x="56" y="38" class="soft">dots: Lowpeak, measured; lines: FreeVideo, '
        "published, by RAM</text>",
    ]
    for seconds in range(6, 17, 2):
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y(seconds):.1f}" y2="{y(seconds):.1f}" '
            f'stroke="var(--soft)" stroke-width=".5"/><text x="20" y="{y(seconds) + 4:.1f}">'
            f"{seconds}</text>"
        )
    for gib in (4, 6, 8, 12, 16, 20, 24, 28, 32):
        parts.append(f'<text x="{x(gib):.1f}" y="{HEIGHT - 18}" text-anchor="middle">{gib}</text>')
    parts.append(f'<text x="{WIDTH - 20}" y="{HEIGHT - 4}" text-anchor="end">GiB of VRAM</text>')
    for ram in (32, 16, 8):
        line = sorted((v, s) for v, r, s in published if r == ram)
        points = " ".join(f"{x(v):.1f},{y(s):.1f}" for v, s in line)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="var(--theirs)" '
            f'stroke-width="1.5" opacity="{ram / 64 + 0.5}"/>'
            f'<text x="{x(line[0][0]) + 6:.1f}" y="{y(line[0][1]) - 4:.1f}" class="soft">'
            f"{ram} GiB RAM</text>"
        )
    for vram, ram, seconds in ours:
        label = f"{vram:g} GiB VRAM, {ram:g} GiB RAM or more: {seconds:.2f} s"
        parts.append(
            f'<circle cx="{x(vram):.1f}" cy="{y(seconds):.1f}" r="{3 + 24 / ram:.1f}" '
            f'fill="none" stroke="var(--ours)" stroke-width="2"><title>{label}</title></circle>'
        )
    options.out.write_text("\n".join([*parts, "</svg>"]) + "\n")


if __name__ == "__main__":
    main()
