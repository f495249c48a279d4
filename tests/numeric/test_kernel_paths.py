"""From choices to operations: forced paths through whole blocks, packages that break at import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lowpeak.engine import kernels_here
from lowpeak.engine.bench import pinned_placement, random_pass
from lowpeak.engine.checkpoint.index import open_checkpoint
from lowpeak.engine.errors import KernelUnavailable, RequestError, WorkerDied
from lowpeak.engine.geometry import Geometry
from lowpeak.engine.kernels_here import (
    KernelOptions,
    choose_kernels,
    kernel_options,
    linear_options,
    name_changes,
)
from lowpeak.engine.sampling.schedules import schedule
from lowpeak.engine.streamed import StreamedDenoiser
from lowpeak.engine.toy import write_toy
from lowpeak.kernels.catalogue import CATALOGUE
from lowpeak.kernels.compose import Unusable, choose_ops, compute_dtype
from lowpeak.kernels.machine import Machine
from lowpeak.kernels.probe import table
from lowpeak.kernels.probe.parent import ProbeFailed
from lowpeak.kernels.registry import Implementation, Needs, Verdict
from lowpeak.kernels.weights import Activation

CPU = torch.device("cpu")


@pytest.fixture(scope="module", params=["edge-int8", "edge-fp8", "edge-fp8-rowwise"])
def checkpoint(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    write_toy(folder, size="tiny", weight_format=request.param, seed=3, device="cpu", blocks=2)
    return open_checkpoint(folder)


def velocities(
    checkpoint, options: KernelOptions | None, dtype: torch.dtype | None = None
) -> tuple[torch.Tensor, str]:
    step = schedule(8).steps()[2]
    placement = pinned_placement(checkpoint.config.layers, transfer_slots=1)
    denoiser = StreamedDenoiser(
        checkpoint, (step.distinct,), placement, CPU, dtype=dtype, kernels=options
    )
    try:
        geometry = Geometry(256, 256, 39)
        layout, text, video, audio = random_pass(checkpoint, geometry, 20)
        velocity = denoiser.bind(layout, text, torch.empty(0, checkpoint.config.video_row))
        found = velocity(video, audio, step)
        return torch.cat([part.reshape(-1) for part in found]), denoiser.choice.chosen["linear"]
    finally:
        denoiser.close()


def test_a_forced_path_runs_whole_blocks_and_agrees(checkpoint) -> None:
    kind = checkpoint.weight_format
    right, usual = velocities(checkpoint, None)
    assert usual == "reference"
    for gemm, least in {"storage": 0.998, "int8-library": 0.999999}.items():
        if gemm == "int8-library" and kind != "int8-convrot":
            with pytest.raises(RequestError, match="no path 'int8-library'"):
                linear_options(gemm, kind)
            continue
        got, ran = velocities(checkpoint, linear_options(gemm, kind))
        assert ran == gemm
        assert float(torch.cosine_similarity(got.double(), right.double(), dim=0)) > least


def test_turing_computes_in_half_precision_between_its_products(checkpoint) -> None:
    """The path of a card before Ampere, on a CPU: float16, decoded weights or int8 products."""
    kind = checkpoint.weight_format
    turing = Machine("linux", "cuda", "2080 Ti", (7, 5))
    assert compute_dtype(turing) == torch.float16
    right, _ = velocities(checkpoint, None)
    gemm = "int8-library" if kind == "int8-convrot" else "storage"
    got, ran = velocities(checkpoint, linear_options(gemm, kind), torch.float16)
    assert ran == gemm and bool(torch.isfinite(got).all())
    assert float(torch.cosine_similarity(got.double(), right.double(), dim=0)) > 0.998


def test_nothing_needs_an_optional_package_to_be_imported() -> None:
    """Every optional package is out of reach: kernels are chosen, reasons name what is missing."""
    lines = (
        "import sys",
        "for name in ('triton', 'comfy_kitchen', 'flash_attn', 'sageattention', 'sageattn3'):",
        "    sys.modules[name] = None",
        "import torch",
        "from lowpeak.engine.kernels_here import choose_kernels",
        "from lowpeak.kernels import linears, vendor",
        "from lowpeak.kernels.probe import table",
        "from lowpeak.kernels.machine import read_machine",
        "found = choose_kernels(torch.device('cpu'), head_dim=128, kind='int8-convrot')",
        "assert found.chosen['linear'] == 'reference', found",
        "assert set(read_machine(torch.device('cpu')).packages) == {'torch'}",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_format_that_the_checkpoint_does_not_hold_is_refused() -> None:
    assert linear_options("fp8-tensor", "fp8-tensor") == kernel_options()
    with pytest.raises(RequestError, match="holds int8-convrot weights, not fp8-tensor"):
        linear_options("fp8-tensor", "int8-convrot")


def test_paths_that_want_plain_rows_get_them() -> None:
    ops = choose_ops(CPU, head_dim=64, kind="int8-convrot", force={"linear": "storage"}).ops
    x = torch.randn(5, 64)
    assert ops.quantise_activation(x, "int8-convrot").kind == "plain"
    assert ops.swiglu(torch.randn(5, 128), kind="int8-convrot").kind == "plain"
    assert ops.gate_heads(torch.randn(5, 2, 32), None, kind="int8-convrot").kind == "plain"
    usual = choose_ops(CPU, head_dim=64, kind="int8-convrot").ops
    assert usual.quantise_activation(x, "int8-convrot").kind == "int8-convrot"
    # A path is forced for the checkpoint's own format, not for others it may hold.
    assert isinstance(ops.quantise_activation(x, "fp8-rowwise"), Activation)
    assert ops.quantise_activation(x, "fp8-rowwise").kind == "fp8-rowwise"


def package_that_breaks(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("raise ImportError('libcudart.so.12: no such file')", "ImportError: libcudart.so.12"),
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("raise SystemError('built for another torch')", "SystemError: built for another torch"),
    ],
)
def test_a_package_that_breaks_at_import_is_a_reason_and_the_next_runs(
    tmp_path, monkeypatch, text, why
) -> None:
    name = f"breaks_{abs(hash(text))}"
    package_that_breaks(tmp_path, name, text)
    monkeypatch.syspath_prepend(tmp_path)
    broken = Implementation(
        "broken",
        "window attention",
        "vendor:sage2_attention",
        Needs(devices=(), packages={name: ""}),
    )
    machine = Machine("linux", "cpu", packages={"torch": "2.11.0", name: "1.0"})
    table = (broken, *CATALOGUE)
    choice = choose_ops(CPU, head_dim=64, kind="plain", machine=machine, table=table)
    assert choice.chosen["window attention"] == "plain"
    assert choice.against["broken (window attention)"].startswith(
        f"{name} cannot be imported: {why}"
    )
    with pytest.raises(Unusable) as none:
        choose_ops(
            CPU, head_dim=64, kind="plain", machine=machine, table=table,
            force={"window attention": "broken"},
        )  # fmt: skip
    assert why in none.value.reasons["broken"] and none.value.reasons["plain"] == "broken is forced"


def test_no_usable_implementation_lists_every_candidate() -> None:
    options = KernelOptions({"global attention": "flash-attn-4"})
    with pytest.raises(KernelUnavailable) as none:
        choose_kernels(CPU, head_dim=64, kind="plain", options=options)
    listed = {item.name for item in CATALOGUE if item.op == "global attention"}
    assert none.value.op == "global attention" and set(none.value.reasons) == listed
    assert "cudnn - needs a cuda device, this is cpu" in str(none.value)


def test_verdicts_reach_the_choice_by_op_and_format() -> None:
    verdicts = {"linear int8-convrot": {"reference": Verdict("inaccurate", "off")}}
    int8 = choose_ops(CPU, head_dim=64, kind="int8-convrot", verdicts=verdicts)
    assert int8.chosen["linear"] == "int8-library"
    assert int8.against["reference (linear)"] == "probe: inaccurate, off"
    fp8 = choose_ops(CPU, head_dim=64, kind="fp8-rowwise", verdicts=verdicts)
    assert fp8.chosen["linear"] == "reference"


def test_the_plan_names_a_kernel_that_changes_the_arithmetic() -> None:
    plan = {"reasons": ["one"], "changes_arithmetic": False}
    exact = {"transformer": {"chosen": {}, "because": {}, "changes_arithmetic": []}}
    assert name_changes(plan, exact) == plan
    counted = name_changes({"reasons": ["one"], "changes_arithmetic": True}, exact)
    assert not counted["changes_arithmetic"] and "exact ones run" in counted["reasons"][1]
    quantised = {
        "transformer": {
            "chosen": {"window attention": "sage-2"},
            "because": {"window attention": "allowed"},
            "changes_arithmetic": ["window attention"],
        }
    }
    named = name_changes(plan, quantised)
    assert named["changes_arithmetic"] and named["reasons"][0] == "one"
    assert "window attention runs through sage-2, which quantises" in named["reasons"][1]
    assert json.dumps(named)


def test_quantised_attention_is_asked_for_by_a_variable(monkeypatch) -> None:
    monkeypatch.delenv("LOWPEAK_QUANTISED_ATTENTION", raising=False)
    assert not kernel_options().allow_quantised
    monkeypatch.setenv("LOWPEAK_QUANTISED_ATTENTION", "1")
    assert kernel_options().allow_quantised


def test_the_probe_keeps_each_verdict_at_once(monkeypatch, tmp_path) -> None:
    card = Machine("linux", "cuda", "H200", (9, 0), "580.1", {"torch": "2.11.0"})
    monkeypatch.setattr(kernels_here, "home", lambda: tmp_path)
    monkeypatch.setattr(kernels_here, "read_machine", lambda device: card)

    def stopped_half_way(machine, device, *, kinds, progress, keep):
        task = {"key": "window attention", "name": "cudnn"}
        keep(task, {"status": "admitted", "figures": {"seconds": 0.004}})
        raise ProbeFailed("the probing process ended with exit code 4")

    monkeypatch.setattr(table, "probe", stopped_half_way)
    with pytest.raises(WorkerDied, match="exit code 4"):
        kernels_here.probe_kernels(CPU)
    kept = kernels_here.verdict_cache().read(card)
    assert kept == {"window attention": {"cudnn": Verdict("admitted", "", 0.004)}}
