"""The process in which candidates run. Tasks come as JSON lines; each is announced, then answered.

    {"begin": id}                   before a candidate is loaded
    {"done": id, "status": ...}     admitted, inaccurate or failed, with the case's figures

A candidate that takes the process down leaves its announcement as the last line: the parent knows.
Started by path (boot.py of this folder's parent process), prints go to standard error.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

import torch

from ..compose import BrokenPackage, load
from ..registry import Implementation
from .cases import run_case, sizes_for
from .judge import Rejected


def serve(tasks: TextIO, answers: TextIO) -> int:
    """Run every task of `tasks`; 0 at the end of input."""

    def say(message: Mapping[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    say({"ready": True})
    with torch.inference_mode():
        for line in tasks:
            task = json.loads(line)
            say({"begin": task["id"]})
            say({"done": task["id"], **_answer(task)})
    return 0


def _answer(task: Mapping[str, Any]) -> dict[str, Any]:
    sys.path[:0] = [path for path in task.get("paths", ()) if path not in sys.path]
    device = torch.device(task["device"])
    item = Implementation(
        task["name"], task["op"], task["load"], exact=task["exact"], activation=task["activation"]
    )
    began = time.perf_counter()
    try:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        found = run_case(
            item,
            load(item),
            task["kind"],
            sizes_for(device, task["sizes"]),
            device,
            getattr(torch, task["dtype"]),
        )
        answer: dict[str, Any] = {"status": "admitted", "figures": found}
    except Rejected as rejected:
        answer = {"status": "inaccurate", "detail": str(rejected)}
    except BrokenPackage as broken:
        answer = {"status": "failed", "detail": f"cannot be imported: {broken}"}
    except Exception as failed:  # whatever a candidate raises is its verdict
        text = f"{type(failed).__name__}: {failed}".splitlines()[0]
        answer = {"status": "failed", "detail": text[:300]}
    if device.type == "cuda" and answer["status"] == "admitted":
        answer["peak_bytes"] = torch.cuda.max_memory_allocated(device)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    return {**answer, "took_seconds": round(time.perf_counter() - began, 3)}
