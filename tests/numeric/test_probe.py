"""The probe with candidates that crash, hang, lie and forget; verdicts kept under the right key."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lowpeak.kernels.catalogue import CATALOGUE
from lowpeak.kernels.machine import Machine
from lowpeak.kernels.probe import parent
from lowpeak.kernels.probe.parent import ProbeFailed, run_tasks
from lowpeak.kernels.probe.table import probe_text, tasks_for, verdicts_of
from lowpeak.kernels.registry import Implementation, Needs, Question, Verdict, choose
from lowpeak.kernels.verdicts import VerdictCache, machine_key

CPU = torch.device("cpu")
HERE = Machine("linux", "cpu", packages={"torch": "2.11.0"})
ANY = Needs(devices=())
CARD = Machine("linux", "cuda", "H200", (9, 0), "580.10", {"torch": "2.11.0", "triton": "3.6.0"})

FAKES = {  # name -> (op, function, exact), what must come of it
    "honest": ("window attention", "honest", "admitted", ""),
    "lie": ("window attention", "lie", "inaccurate", "values: relative error"),
    "forget": ("window attention", "forget", "inaccurate", "unwritten"),
    "changes keys": ("window attention", "smooth_in_place", "inaccurate", "changes its input k"),
    "raises": ("window attention", "raises", "failed", "no kernel image"),
    "absent": ("window attention", "nowhere", "failed", "nowhere"),
    "crash": ("window attention", "crash", "crashed", "signal 9"),
    "after the crash": ("window attention", "honest", "admitted", ""),
    "leave": ("window attention", "leave", "crashed", "exit code 7: out of luck"),
    "honest partial": ("global attention", "honest_partial", "admitted", ""),
    "wrong lse": ("global attention", "wrong_lse", "inaccurate", "log-sum-exp"),
    "own output": ("linear", "own_output", "inaccurate", "does not write the output"),
    "coarse": ("linear", "coarse", "inaccurate", "product"),
    "hang": ("window attention", "hang", "hung", "no answer within 8 s"),
}


@pytest.fixture(scope="module")
def results() -> dict:
    table = [
        Implementation(name, op, f"/probe_fakes:{function}", ANY)
        for name, (op, function, *_) in FAKES.items()
    ]
    tests = str(Path(__file__).resolve().parents[1])
    tasks, refused = tasks_for(
        HERE, CPU, sizes="tiny", table=table, kinds=("int8-convrot",), paths=(tests,)
    )
    assert not refused and len(tasks) == len(FAKES)
    order = list(FAKES)
    tasks.sort(key=lambda task: order.index(task["name"]))
    kept = []
    found = run_tasks(tasks, candidate_seconds=8, keep=lambda task, _: kept.append(task["id"]))
    assert kept == [task["id"] for task in tasks]
    return {task["name"]: found[task["id"]] for task in tasks}


@pytest.mark.parametrize("name", FAKES)
def test_a_bad_candidate_gets_its_verdict_and_a_good_one_beside_it_is_admitted(results, name):
    *_, status, detail = FAKES[name]
    assert results[name]["status"] == status, results[name]
    assert detail in results[name].get("detail", "")
    if status == "admitted":
        assert results[name]["figures"]["seconds"] > 0


def test_verdicts_keep_a_liar_out_and_say_why(results):
    table = [Implementation(name, "window attention", "", ANY) for name in ("lie", "honest")]
    document = {
        "ops": {"window attention": {name: results[name] for name in ("lie", "honest")}},
        "refused": {},
        "seconds": 1.0,
        "cold_first_calls_seconds": 0.0,
    }
    verdicts = verdicts_of(document)["window attention"]
    question = Question("float32", 64)
    found = choose("window attention", table, HERE, question, verdicts=verdicts)
    assert found.name == "honest"
    assert found.against["lie"].startswith("probe: inaccurate, values: relative error")
    assert "lie" in probe_text(document) and "inaccurate" in probe_text(document)


@pytest.mark.parametrize(
    ("text", "says", "seconds"),
    [
        ("raise SystemExit(4)", "exit code 4", 60),
        ("import time; time.sleep(60)", "not ready within 1 s", 1),
    ],
)
def test_a_process_that_does_not_begin_is_no_verdict(monkeypatch, tmp_path, text, says, seconds):
    boot = tmp_path / "boot.py"
    boot.write_text(text)
    monkeypatch.setattr(parent, "BOOT", boot)
    with pytest.raises(ProbeFailed, match=says):
        run_tasks([{"id": "a", "op": "x", "kind": "", "name": "y"}], start_seconds=seconds)


def test_only_what_a_machine_can_run_is_probed():
    tasks, refused = tasks_for(CARD, torch.device("cuda"))
    names = {(task["key"], task["name"]) for task in tasks}
    assert ("linear fp8-rowwise", "scaled-rowwise") in names
    assert ("linear int8-convrot", "scaled-rowwise") not in names
    assert ("window attention", "sage-2") not in names
    assert refused["window attention"]["sage-2"] == "sageattention is not installed"
    assert all(task["dtype"] == "bfloat16" for task in tasks)
    every = {item.name for item in CATALOGUE} - {"plain", "reference"}
    listed = {name for _, name in names} | {n for found in refused.values() for n in found}
    assert every <= listed


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"driver": "580.99"}, True),
        ({"driver": "590.10"}, False),
        ({"name": "H100"}, False),
        ({"packages": {"torch": "2.11.0", "triton": "3.7.0"}}, False),
        ({"packages": {"triton": "3.6.0", "torch": "2.11.0"}}, True),
        ({"broken": {"flash_attn": "no symbol"}}, True),
    ],
)
def test_the_key_changes_when_it_must_and_not_otherwise(change, same):
    assert (machine_key(replace(CARD, **change)) == machine_key(CARD)) is same


def test_the_key_changes_with_our_own_kernels():
    assert machine_key(CARD, "one") != machine_key(CARD, "two")


def test_verdicts_are_kept_by_machine_and_added_to(tmp_path):
    cache = VerdictCache(tmp_path / "deep" / "kernels.json")
    other = replace(CARD, name="H100")
    assert cache.read(CARD) == {}
    cache.write(CARD, {"window attention": {"cudnn": Verdict("admitted", "", 0.004)}}, {})
    cache.write(other, {"window attention": {"cudnn": Verdict("crashed", "signal 11")}}, {})
    cache.write(CARD, {"window attention": {"torch-flash": Verdict("hung", "x")}}, {"day": 1})
    assert cache.read(CARD)["window attention"] == {
        "cudnn": Verdict("admitted", "", 0.004),
        "torch-flash": Verdict("hung", "x"),
    }
    assert cache.read(other)["window attention"]["cudnn"].status == "crashed"
    assert list(tmp_path.rglob("*.json*")) == [cache.path]


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"schema": 99, "entries": {"a": 1}})])
def test_a_damaged_file_reads_as_empty_and_is_replaced(tmp_path, text):
    cache = VerdictCache(tmp_path / "kernels.json")
    cache.path.write_text(text)
    assert cache.read(CARD) == {}
    cache.write(CARD, {"branch": {"triton": Verdict("admitted")}}, {})
    assert cache.read(CARD)["branch"]["triton"].status == "admitted"
