"""The probe of a whole machine: every candidate whose needs are met, judged, timed, kept.

A verdict of an op is of all its cases. Linears are judged by weight format.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ..catalogue import CATALOGUE
from ..compose import compute_dtype, verdict_key
from ..machine import Machine
from ..registry import OPS, Implementation, Question, Verdict, refusal
from ..weights import KINDS
from .parent import run_tasks

SLOW = ("plain", "reference")  # last resorts that always work: judged only when nothing else can


def tasks_for(
    machine: Machine,
    device: torch.device,
    *,
    sizes: str = "full",
    table: Sequence[Implementation] = CATALOGUE,
    ops: Sequence[str] = OPS,
    kinds: Sequence[str] = KINDS,
    paths: Sequence[str] = (),
) -> tuple[list[dict[str, Any]], dict[str, dict[str, str]]]:
    """What to run, and by op the candidates whose needs are not met with the reason."""
    dtype = str(compute_dtype(machine)).removeprefix("torch.")
    tasks, refused = [], {}
    for op in ops:
        for kind in kinds if op == "linear" else ("",):
            key = verdict_key(op, kind)
            for item in table:
                if item.op != op or (item.needs.kinds and kind not in item.needs.kinds):
                    continue
                width = 64 if sizes == "tiny" else 128
                reason = refusal(item.needs, machine, Question(dtype, width, kind))
                if reason:
                    refused.setdefault(key, {})[item.name] = reason
                elif item.name not in SLOW or machine.device == "cpu":
                    tasks.append(_task(item, key, kind, device, dtype, sizes, paths))
    return tasks, refused


def _task(item, key, kind, device, dtype, sizes, paths) -> dict[str, Any]:
    return {
        "id": f"{key}/{item.name}",
        "key": key,
        "op": item.op,
        "kind": kind,
        "name": item.name,
        "load": item.load,
        "exact": item.exact,
        "activation": item.activation,
        "device": str(device),
        "dtype": dtype,
        "sizes": sizes,
        "paths": list(paths),
    }


def probe(
    machine: Machine,
    device: torch.device,
    *,
    sizes: str = "full",
    progress: Callable[[str], None] = lambda line: None,
    cold: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """The document: machine, {op: {name: result}}, refused, seconds. cold: kernels are compiled
    into an empty folder, so that first calls tell what a fresh machine waits for."""
    began = time.perf_counter()
    names = ("table", "ops", "kinds", "paths")
    chosen = {name: options.pop(name) for name in names if name in options}
    tasks, refused = tasks_for(machine, device, sizes=sizes, **chosen)
    with tempfile.TemporaryDirectory(prefix="lowpeak-kernels-") as folder:
        environment = {"TRITON_CACHE_DIR": folder} if cold else {}
        results = run_tasks(tasks, environment=environment, progress=progress, **options)
    found: dict[str, dict[str, Any]] = {}
    for task in tasks:
        found.setdefault(task["key"], {})[task["name"]] = results[task["id"]]
    return {
        "machine": machine.as_json(),
        "sizes": sizes,
        "ops": found,
        "refused": refused,
        "cold_first_calls_seconds": _first_calls(found),
        "seconds": round(time.perf_counter() - began, 1),
    }


def verdict_of(result: Mapping[str, Any]) -> Verdict:
    """A result as the registry reads it."""
    seconds = result.get("figures", {}).get("seconds")
    return Verdict(result["status"], result.get("detail", ""), seconds)


def verdicts_of(document: Mapping[str, Any]) -> dict[str, dict[str, Verdict]]:
    """Verdicts of a probe's document."""
    return {
        key: {name: verdict_of(result) for name, result in results.items()}
        for key, results in document["ops"].items()
    }


def _first_calls(found: Mapping[str, Mapping[str, Any]]) -> float:
    """Seconds of first calls of our own Triton kernels, compilation included."""
    total = 0.0
    for results in found.values():
        for name, result in results.items():
            if name in ("triton", "int8-triton"):
                total += result.get("figures", {}).get("first_seconds", 0.0)
    return round(total, 2)


def probe_text(document: Mapping[str, Any]) -> str:
    """The table for a terminal."""
    lines = []
    for key, results in document["ops"].items():
        lines.append(f"probe    {key}")
        for name, result in sorted(results.items(), key=_order):
            figures = result.get("figures", {})
            text = f"           {name:<16} {result['status']}"
            if "seconds" in figures:
                text += f"  {figures['seconds'] * 1e3:9.3f} ms  error {figures['error']:.1e}"
            if "tflops" in figures:
                text += f"  {figures['tflops']:.0f} TFLOP/s"
            if result.get("detail"):
                text += f"  {result['detail']}"
            lines.append(text)
        for name, why in document["refused"].get(key, {}).items():
            lines.append(f"           {name:<16} out  {why}")
    lines.append(
        f"probe    {document['seconds']:.0f} s; first calls of our kernels, compilation included: "
        f"{document['cold_first_calls_seconds']:.1f} s"
    )
    return "\n".join(lines)


def _order(entry: tuple[str, Mapping[str, Any]]) -> float:
    return entry[1].get("figures", {}).get("seconds", float("inf"))
