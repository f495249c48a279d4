"""Which kernels a recorded machine gets and why not others; no card, no torch.

The machines are records, so that architectures which cannot be run here are covered all the same.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from lowpeak.kernels.catalogue import CATALOGUE
from lowpeak.kernels.machine import Machine, machine_from_json, parse_version
from lowpeak.kernels.registry import Question, Verdict, choose

PLAIN = {"torch": "2.11.0+cu130"}
TRITON = {**PLAIN, "triton": "3.6.0"}
FULL = {
    **TRITON,
    "comfy_kitchen": "0.2.40",
    "flash_attn": "2.8.3",
    "flash_attn.cute": "4.0.0b36",
    "sageattention": "2.2.0",
    "sageattn3": "1.0.0",
}


def card(name: str, major: int, minor: int, packages=TRITON, system: str = "linux") -> Machine:
    return Machine(system, "cuda", name, (major, minor), "580.10", dict(packages))


# machine, dtype, then what runs: branch, fp8-rowwise, fp8-tensor, int8, window, global
TABLE = {
    "RTX 2080 Ti, Turing": (
        card("2080 Ti", 7, 5), "float16",
        "reference", "storage", "storage", "int8-library", "efficient", "efficient",
    ),
    "RTX 2060 with kitchen": (
        card("2060", 7, 5, {**TRITON, "comfy_kitchen": "0.2.40"}), "float16",
        "reference", "storage", "storage", "int8-kitchen", "efficient", "efficient",
    ),
    "A100": (
        card("A100", 8, 0), "bfloat16",
        "triton", "storage", "storage", "int8-triton", "cudnn", "cudnn",
    ),
    "RTX 3090": (
        card("3090", 8, 6), "bfloat16",
        "triton", "storage", "storage", "int8-triton", "cudnn", "cudnn",
    ),
    "RTX 3060, Windows without Triton": (
        card("3060", 8, 6, PLAIN, "windows"), "bfloat16",
        "reference", "storage", "storage", "int8-library", "cudnn", "cudnn",
    ),
    "RTX 4090": (
        card("4090", 8, 9), "bfloat16",
        "triton", "scaled-rowwise", "scaled-tensor", "int8-triton", "cudnn", "cudnn",
    ),
    "RTX 4060 Ti, Windows": (
        card("4060 Ti", 8, 9, TRITON, "windows"), "bfloat16",
        "triton", "scaled-tiled", "scaled-tensor", "int8-triton", "cudnn", "cudnn",
    ),
    "H200": (
        card("H200", 9, 0), "bfloat16",
        "triton", "scaled-rowwise", "scaled-tensor", "int8-triton", "cudnn", "cudnn",
    ),
    "H200 with everything": (
        card("H200", 9, 0, FULL), "bfloat16",
        "triton", "scaled-rowwise", "scaled-tensor", "int8-triton", "cudnn", "cudnn",
    ),
    "B200": (
        card("B200", 10, 0, FULL), "bfloat16",
        "triton", "scaled-rowwise", "scaled-tensor", "int8-triton", "cudnn", "cudnn",
    ),
    "RTX 5090": (
        card("5090", 12, 0, FULL), "bfloat16",
        "triton", "scaled-rowwise", "scaled-tensor", "int8-triton", "cudnn", "cudnn",
    ),
    "RTX 5060, Windows without Triton": (
        card("5060", 12, 0, PLAIN, "windows"), "bfloat16",
        "reference", "scaled-tiled", "scaled-tensor", "int8-library", "cudnn", "cudnn",
    ),
    "AMD card under ROCm": (
        Machine("linux", "hip", "gfx1201", (12, 0), "", dict(TRITON)), "bfloat16",
        "reference", "storage", "storage", "storage", "torch-flash", "torch-flash",
    ),
    "AMD card without ROCm, so a CPU": (
        Machine("linux", "cpu", packages=dict(TRITON)), "float32",
        "reference", "reference", "reference", "reference", "plain", "plain",
    ),
    "no card, Windows": (
        Machine("windows", "cpu", packages=dict(PLAIN)), "float32",
        "reference", "reference", "reference", "reference", "plain", "plain",
    ),
}  # fmt: skip
ASKED = (
    ("branch", ""),
    ("linear", "fp8-rowwise"),
    ("linear", "fp8-tensor"),
    ("linear", "int8-convrot"),
    ("window attention", ""),
    ("global attention", ""),
)


@pytest.mark.parametrize("name", TABLE)
def test_every_recorded_machine_gets_these_kernels(name: str) -> None:
    machine, dtype, *expected = TABLE[name]
    found = [choose(op, CATALOGUE, machine, Question(dtype, 128, kind)).name for op, kind in ASKED]
    assert found == expected


@pytest.mark.parametrize("name", TABLE)
def test_every_other_candidate_has_a_reason(name: str) -> None:
    machine, dtype, *_ = TABLE[name]
    for op, kind in ASKED:
        chosen = choose(op, CATALOGUE, machine, Question(dtype, 128, kind))
        names = {
            item.name
            for item in CATALOGUE
            if item.op == op and (not item.needs.kinds or kind in item.needs.kinds)
        }
        assert set(chosen.against) == names - {chosen.name}
        assert all(chosen.against.values()) and chosen.because


def test_a_machine_survives_its_record() -> None:
    machine = replace(TABLE["H200 with everything"][0], broken={"flash_attn": "no libcudart"})
    assert machine_from_json(machine.as_json()) == machine


def test_reasons_name_what_is_asked_and_what_is_there() -> None:
    packages = {**TRITON, "sageattention": "0.9", "triton": "2.1"}
    machine = replace(card("4090", 8, 9, packages), broken={"flash_attn": "undefined symbol"})
    window = choose("window attention", CATALOGUE, machine, Question("bfloat16", 96)).against
    assert window["sage-1"] == "head width 96, needs 64 or 128"
    assert window["flash-attn-2"] == "flash_attn cannot be imported: undefined symbol"
    assert window["kitchen-int8"] == "comfy_kitchen is not installed"
    assert window["sage-3"] == "needs capability 10.0, this device has 8.9"
    branch = choose("branch", CATALOGUE, machine, Question("bfloat16", 128))
    assert branch.against["triton"] == "triton 2.1 is too old, needs 3.2"
    on_windows = replace(machine, system="windows")
    rowwise = choose("linear", CATALOGUE, on_windows, Question("bfloat16", 128, "fp8-rowwise"))
    assert rowwise.against["scaled-rowwise"] == "needs linux, this is windows"
    old_sage = choose("window attention", CATALOGUE, machine, Question("bfloat16", 128)).against
    assert old_sage["sage-1"] == (
        "triton 2.1 is too old, needs 3.0; sageattention 0.9 is too old, needs 1.0"
    )


def test_sage_versions_do_not_mix() -> None:
    for version, runs, out in (("1.0.6", "sage-1", "sage-2"), ("2.2.0", "sage-2", "sage-1")):
        machine = card("4090", 8, 9, {**TRITON, "sageattention": version})
        question = Question("bfloat16", 128)
        found = choose("window attention", CATALOGUE, machine, question, force=runs)
        assert found.name == runs and "sageattention" in found.against[out]


@pytest.mark.parametrize("package", ["triton", "sageattention", "flash_attn", "comfy_kitchen"])
def test_absent_packages_in_any_combination_leave_something_that_runs(package: str) -> None:
    """Each of the four absent, broken or too old, with every combination of the others."""
    machine = card("4090", 8, 9, FULL)
    others = [p for p in ("triton", "sageattention", "flash_attn", "comfy_kitchen") if p != package]
    states = ("here", "absent", "broken", "old")
    for state, *rest in itertools.product(states[1:], *[states] * len(others)):
        found = in_state(machine, dict(zip([package, *others], [state, *rest], strict=True)))
        for op, kind in ASKED:
            chosen = choose(op, CATALOGUE, found, Question("bfloat16", 128, kind))
            assert chosen.implementation is not None, (state, rest, chosen.against)
            needed = chosen.implementation.needs.packages
            assert package not in needed, f"{chosen.name} needs {package}, which is {state}"
        window = choose("window attention", CATALOGUE, found, Question("bfloat16", 128))
        words = {"absent": "not installed", "broken": "cannot be imported", "old": "too old"}
        about = [why for why in window.against.values() if package in why]
        assert any(words[state] in why for why in about)


def in_state(machine: Machine, states: dict[str, str]) -> Machine:
    packages, broken = dict(machine.packages), {}
    for package, state in states.items():
        if state == "absent":
            del packages[package]
        elif state == "broken":
            broken[package] = "ImportError: no symbol"
        elif state == "old":
            packages[package] = "0.1"
    return replace(machine, packages=packages, broken=broken)


WINDOW = Question("bfloat16", 128)
MACHINE = TABLE["H200 with everything"][0]


def window(verdicts, **named):
    found = {name: Verdict(*values) for name, values in verdicts.items()}
    return choose("window attention", CATALOGUE, MACHINE, WINDOW, verdicts=found, **named)


def test_the_measured_fastest_exact_form_is_taken() -> None:
    found = window({"cudnn": ("admitted", "", 4.0), "torch-flash": ("admitted", "", 3.0)})
    assert found.name == "torch-flash" and found.because == "measured fastest"
    assert found.against["cudnn"] == "slower: 4000.00 ms against 3000.00 ms"
    assert found.against["flash-attn-4"] == "not timed by the probe"


@pytest.mark.parametrize("status", ["inaccurate", "crashed", "hung", "failed"])
def test_what_the_probe_did_not_admit_is_out(status: str) -> None:
    found = window({"cudnn": (status, "why", 1.0), "torch-flash": ("admitted", "", 3.0)})
    assert found.name == "torch-flash" and found.against["cudnn"] == f"probe: {status}, why"
    assert window({"cudnn": (status, "why")}, force="cudnn").implementation is None


@pytest.mark.parametrize(
    ("seconds", "allowed", "expected"),
    [(1.0, False, "cudnn"), (3.7, True, "cudnn"), (3.6, True, "sage-2"), (None, True, "cudnn")],
)
def test_quantised_attention_only_when_allowed_and_over_10_percent_faster(
    seconds, allowed, expected
) -> None:
    found = window(
        {"cudnn": ("admitted", "", 4.0), "sage-2": ("admitted", "", seconds)},
        allow_quantised=allowed,
    )
    assert found.name == expected
    if expected == "sage-2":
        assert "quantised attention is allowed" in found.because
    else:
        assert found.against["sage-2"]


def test_unmeasured_quantised_attention_is_never_the_default() -> None:
    assert window({}, allow_quantised=True).name == "cudnn"


def test_a_forced_form_runs_or_nothing_does_and_everything_is_listed() -> None:
    forced = window({}, force="efficient")
    assert forced.name == "efficient" and forced.against["cudnn"] == "efficient is forced"
    none = window({}, force="nonsense")
    assert none.implementation is None
    assert none.against["nonsense"] == "there is no such implementation"
    assert none.against["cudnn"] == "nonsense is forced" and none.against["sage-1"]


def test_versions_compare_as_numbers() -> None:
    assert parse_version("2.11.0+cu130") == (2, 11, 0) > parse_version("2.9")
    assert parse_version("4.0.0b36") == (4, 0, 0) and parse_version("dev") == (0,)
