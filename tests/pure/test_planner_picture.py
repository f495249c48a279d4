"""The capacity picture: every cell drawn, well-formed, refusals marked."""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml

from planner_tools import FACTS, reference_rows, single_pass

from lowpeak.engine.capacity_grid import capacity_rows, capacity_svg, cells_of


def test_every_cell_is_drawn_with_its_seconds_and_refusals_with_a_dash() -> None:
    rows = capacity_rows(
        single_pass(), FACTS, reference_rows(), vram_gib=(2, 8, 12), ram_gib=(8, 16)
    )
    cells = cells_of(rows)
    assert len(cells) == 6 and cells[2, 8] is None
    assert "why" in rows[0]
    svg = capacity_svg("a <title> & more", [("one", cells), ("two", cells)])
    tree = xml.fromstring(svg)
    texts = [element.text for element in tree.iter() if element.tag.endswith("text")]
    for value in cells.values():
        text = "-" if value is None else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
        assert texts.count(text) >= 2
    assert "a <title> & more" in texts
    width, height = (float(tree.attrib[name]) for name in ("width", "height"))
    for element in tree.iter():
        if element.tag.endswith("rect") and "x" in element.attrib:
            assert float(element.attrib["x"]) < width and float(element.attrib["y"]) < height
    assert not re.search(r"nan|inf", svg)
