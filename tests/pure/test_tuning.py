"""Launch parameters are data: no kernel's launch holds one as a number, no row is without a use."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lowpeak.kernels import tuning

SOURCES = sorted((tuning.FILE.parent / "triton").glob("*.py"))
OPS = {row["op"] for row in tuning.read_rows()}
NAMES = {name for row in tuning.read_rows() for name in row["values"]}


def has_number(node: ast.AST) -> bool:
    """A number anywhere in an expression but as an index."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    inner = [node.value] if isinstance(node, ast.Subscript) else ast.iter_child_nodes(node)
    return any(map(has_number, inner))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_launch_holds_a_parameter_as_a_number(path: Path) -> None:
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Subscript):  # kernel[grid](...)
            written = {
                item.arg for item in call.keywords if item.arg in NAMES and has_number(item.value)
            }
            assert not written, f"{path.name}:{call.lineno} sets {written}: a row of tuning.toml"


def test_every_row_is_read_by_a_launch() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCES)
    unread = {op for op in OPS if f'"{op.removesuffix("_narrow")}"' not in text}
    assert not unread


def test_every_op_runs_on_a_card_without_a_row_of_its_own() -> None:
    for op in OPS:
        assert tuning.pick(tuning.read_rows(), op, None)["num_warps"] in (1, 2, 4, 8, 16, 32)


def test_narrow_heads_have_rows_of_their_own() -> None:
    assert tuning.for_width("scan_chunks", 128) == "scan_chunks"
    assert tuning.for_width("scan_chunks", 64) == "scan_chunks_narrow"
    assert {op.removesuffix("_narrow") for op in OPS} <= OPS
