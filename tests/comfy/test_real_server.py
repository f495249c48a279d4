"""The pack inside a real ComfyUI, on the miniature checkpoint. Needs COMFYUI_DIR.

COMFYUI_DIR: a ComfyUI checkout, 0.33.0 or newer. COMFYUI_PYTHON: an interpreter with ComfyUI's and
our requirements (default: the checkout's venv, else this one).
"""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp
import av
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

REPOSITORY = Path(__file__).resolve().parents[2]
WORKFLOWS = REPOSITORY / "workflows/api"
CHECKPOINT = "vdn-minimax-h3-edge"  # the name the example graphs carry
WITH_REFERENCES = "with-references"
SMALL = {"width": 256, "height": 256, "seconds": 0.9, "length": 22, "base_steps": 2,
         "refine_steps": 1}  # fmt: skip
NODE_IDS = {"LowpeakLoadModel", "LowpeakLoadLora", "LowpeakEncodePrompt", "LowpeakKeyframes",
            "LowpeakReferences", "LowpeakPlan", "LowpeakSample", "LowpeakRefine", "LowpeakDecode",
            "LowpeakReport"}  # fmt: skip
RUNNABLE = ("text_to_video_light", "text_to_video_max", "first_and_last_frame", "lora_stack",
            "card_4_gib")  # fmt: skip

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("COMFYUI_DIR"),
        reason="COMFYUI_DIR is not set: no ComfyUI checkout to run the pack in",
    ),
    pytest.mark.timeout(900),
]


def helper(name: str) -> ModuleType:
    known = f"lowpeak_tests_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, Path(__file__).parent / f"{name}.py")
        assert spec and spec.loader
        sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


def write_lora(path: Path, checkpoint: Path, seed: int) -> None:
    """A small adapter that binds to the miniature's attention."""
    from lowpeak.engine.models import lora_shapes

    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in lora_shapes(checkpoint).parameters.items():
        if name.endswith("to_q.weight"):
            module = "transformer." + name.removesuffix(".weight").replace("attn.orig", "attn")
            for side, size in (("lora_A", (2, shape[1])), ("lora_B", (shape[0], 2))):
                noise = torch.randn(size, generator=generator) * 0.1
                tensors[f"{module}.{side}.weight"] = noise
    assert tensors
    save_file(tensors, path)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from lowpeak.engine.checkpoint.toy import write_toy_checkpoint
    from lowpeak.engine.toy import write_toy

    checkout = Path(os.environ["COMFYUI_DIR"])
    base = tmp_path_factory.mktemp("comfy")
    made = helper("real_server").ComfyServer(checkout, base, REPOSITORY)
    checkpoint = base / "models/lowpeak" / CHECKPOINT
    write_toy(checkpoint, size="tiny", weight_format="edge-fp8-rowwise", seed=1)
    other = base / "models/lowpeak" / WITH_REFERENCES
    shutil.copytree(checkpoint, other)
    write_toy_checkpoint(other / "transformer_ref", size="tiny", seed=9)
    write_toy(base / "native", size="tiny", weight_format="comfy", seed=1)
    (native,) = (base / "native/diffusion_models").iterdir()
    (base / "models/diffusion_models").mkdir(parents=True)
    tensors = load_file(native)
    # Core reads its rotary frequencies from the file: head width / 8 of them.
    count = tensors["blocks.0.attn.q_norm.weight"].shape[0] // 8
    tensors["rope.inv_freq"] = 10000.0 ** -(torch.arange(count) / count)
    save_file(tensors, base / "models/diffusion_models/native.safetensors")
    (base / "models/loras").mkdir(parents=True)
    write_lora(base / "models/loras/style.safetensors", checkpoint, 1)
    write_lora(base / "models/loras/motion.safetensors", checkpoint, 2)
    Image.linear_gradient("L").convert("RGB").save(base / "input/example.png")
    with made as running:
        yield running


def workflow(name: str, **changes: Any) -> dict[str, Any]:
    """A bundled graph, made small enough for a CPU."""
    prompt = json.loads((WORKFLOWS / f"{name}.json").read_text())
    for node in prompt.values():
        node["inputs"].update({k: v for k, v in SMALL.items() if k in node["inputs"]})
        node["inputs"].update({k: v for k, v in changes.items() if k in node["inputs"]})
        if node["inputs"].get("quality") == "max":
            node["inputs"]["refine_steps"] = 0
        if node["class_type"] == "LowpeakLoadModel":
            node["inputs"]["vram_gib"] = 0.0  # the limit is about a card, and there is none
    return prompt


def node_of(prompt: dict[str, Any], kind: str) -> str:
    return next(number for number, node in prompt.items() if node["class_type"] == kind)


def test_the_pack_imports_and_serves_its_schemas(server: Any, our_nodes: dict[str, Any]) -> None:
    served = server.get("/object_info")
    assert set(served) >= NODE_IDS
    assert "IMPORT FAILED" not in server.log.read_text()
    for name, contract in our_nodes.items():
        info = served[name]
        assert info["output"] == contract["output"] and info["category"] == "Lowpeak"
        assert info["input_order"] == {**info["input_order"], **contract["input_order"]}
        for part, fields in contract["input"].items():
            for field, (type_, options) in fields.items():
                real_type, real_options = info["input"][part][field]
                assert real_type == type_, f"{name}.{field}"
                for key, value in options.items():
                    if key not in ("options", "template", "default"):
                        assert real_options[key] == value, f"{name}.{field}.{key}"
        assert all(info["output_tooltips"])


@pytest.mark.parametrize("name", RUNNABLE)
def test_a_bundled_graph_runs(server: Any, name: str) -> None:
    before = set((server.base / "output").rglob("*.mp4"))
    prompt = workflow(name)
    outcome = server.run(prompt)
    assert outcome.ended == "execution_success", outcome.error or outcome.refused
    (video,) = set((server.base / "output").rglob("*.mp4")) - before
    with av.open(str(video)) as container:
        frames = sum(1 for _ in container.decode(video=0))
        assert frames == 22 and container.streams.audio[0].sample_rate == 32000
        kept = json.loads(container.metadata["prompt"])
    for node in kept.values():
        node.pop("is_changed", None)  # ComfyUI notes fingerprints there
    assert kept == prompt, "the graph is in the file"
    ours = outcome.of("lowpeak.run")
    assert {event["kind"] for event in ours} >= {"forecast", "progress", "measured"}
    assert {event["run_id"] for event in ours} == {outcome.prompt_id}
    times = [moment for moment, kind, _ in outcome.events if kind == "lowpeak.run"]
    assert len(times) <= 2 * (times[-1] - times[0]) + 3 * 4, "about two events a second and node"


def test_saved_latents_are_refined_by_themselves(server: Any) -> None:
    light = workflow("text_to_video_light", save_latents=True, seed=11)
    assert server.run(light).ended == "execution_success"
    names = {path.name.split("_")[0] for path in (server.base / "output/lowpeak").iterdir()}
    assert names == {"first", "final"}
    outcome = server.run(workflow("second_pass_from_saved", seed=12))
    assert outcome.ended == "execution_success", outcome.error or outcome.refused


def test_references_run_with_their_transformer_and_are_refused_without(server: Any) -> None:
    outcome = server.run(workflow("references"))
    assert outcome.ended == "execution_error", outcome.refused
    assert "RequestError" in outcome.error and "reference transformer" in outcome.error
    single = {"passes": "single", "base_steps": 1, "refine_steps": 0}
    prompt = workflow("references", checkpoint=WITH_REFERENCES, **single)
    outcome = server.run(prompt)
    assert outcome.ended == "execution_success", outcome.error or outcome.refused
    (run,) = {event["run_id"] for event in outcome.of("lowpeak.run")}
    headers = server.get(f"/lowpeak/runs/{run}")["report"]["checkpoint"]["header_sha256"]
    assert headers, "the report names the transformer that ran"


def test_the_interop_graph_lacks_only_cores_files(server: Any) -> None:
    outcome = server.run(workflow("core_encoder_and_decoder"))
    assert outcome.ended == "refused"
    errors = outcome.refused["node_errors"]
    kinds = {e["type"] for node in errors.values() for e in node["errors"]}
    assert {node["class_type"] for node in errors.values()} <= {"CLIPLoader", "VAELoader"}
    assert kinds == {"value_not_in_list"}


def test_cores_sampler_takes_our_conditioning_and_our_nodes_its_latents(server: Any) -> None:
    """Ours encodes, core samples its own H3, ours samples at that latent's size, ours decodes."""
    node = {
        "1": ("LowpeakLoadModel", {"checkpoint": CHECKPOINT, "vram_gib": 0.0, "ram_gib": 0.0}),
        "2": ("LowpeakEncodePrompt", {"model": ["1", 0], "prompt": "a fox"}),
        "3": ("UNETLoader", {"unet_name": "native.safetensors", "weight_dtype": "default"}),
        "4": ("EmptyMiniMaxH3LatentAV", {"width": 256, "height": 288, "length": 22}),
        "5": ("BasicGuider", {"model": ["3", 0], "conditioning": ["2", 0]}),
        "6": ("BasicScheduler", {"model": ["3", 0], "scheduler": "simple", "steps": 2,
                                 "denoise": 1.0}),
        "7": ("SamplerCustomAdvanced", {"noise": ["8", 0], "guider": ["5", 0], "sampler": ["9", 0],
                                        "sigmas": ["6", 0], "latent_image": ["4", 0]}),
        "8": ("RandomNoise", {"noise_seed": 1}),
        "9": ("KSamplerSelect", {"sampler_name": "euler"}),
        "10": ("LowpeakDecode", {"model": ["1", 0], "latent": ["7", 0], "with_sound": True}),
        "11": ("SaveVideo", {"video": ["10", 0], "filename_prefix": "video/core",
                             "format": "auto", "codec": "auto"}),
        "12": ("LowpeakSample", {"model": ["1", 0], "conditioning": ["2", 0], "seed": 1,
                                 "width": 1344, "height": 768, "seconds": 5.0, "quality": "max",
                                 "passes": "as quality says", "base_steps": 2, "refine_steps": 0,
                                 "save_latents": False, "size_from": ["7", 0]}),
        "13": ("LowpeakDecode", {"model": ["1", 0], "latent": ["12", 0], "with_sound": False}),
        "14": ("SaveVideo", {"video": ["13", 0], "filename_prefix": "video/ours",
                             "format": "auto", "codec": "auto"}),
    }  # fmt: skip
    prompt = {
        number: {"class_type": kind, "inputs": given} for number, (kind, given) in node.items()
    }
    outcome = server.run(prompt)
    assert outcome.ended == "execution_success", outcome.error or outcome.refused
    for stem in ("core", "ours"):
        (video,) = (server.base / "output/video").glob(f"{stem}_*.mp4")
        with av.open(str(video)) as container:
            stream = container.streams.video[0]
            assert (stream.width, stream.height) == (256, 288)
            assert len(container.streams.audio) == (stem == "core")


def test_an_unchanged_graph_comes_from_the_cache(server: Any) -> None:
    prompt = workflow("text_to_video_light", seed=21)
    assert server.run(prompt).ended == "execution_success"
    again = server.run(prompt)
    assert again.ended == "execution_success"
    assert set(again.of("execution_cached")[-1]["nodes"]) == set(prompt)
    other = workflow("text_to_video_light", seed=22)
    cached = set(server.run(other).of("execution_cached")[-1]["nodes"])
    encode, load = (node_of(other, f"Lowpeak{kind}") for kind in ("EncodePrompt", "LoadModel"))
    assert cached == {encode, load}


def test_bad_sizes_and_files_are_refused_before_queueing(server: Any) -> None:
    for changes, says in (
        ({"width": 300}, "multiple of 32"),
        ({"seconds": 0.1}, "shorter"),
        ({"checkpoint": "../../etc"}, "models/lowpeak"),
        ({"vram_gib": -3.0}, "amount of memory"),
    ):
        prompt = workflow("text_to_video_light")
        for node in prompt.values():
            node["inputs"].update({k: v for k, v in changes.items() if k in node["inputs"]})
        outcome = server.run(prompt)
        assert outcome.ended == "refused" and says in json.dumps(outcome.refused), changes


def test_stop_interrupts_within_a_second_and_the_next_run_is_right(server: Any) -> None:
    prompt = workflow("text_to_video_light", seed=31, base_steps=32, refine_steps=0)
    asked: list[float] = []

    async def press_stop(outcome: Any, kind: str, data: Any) -> None:
        if kind == "lowpeak.run" and data["kind"] == "progress" and not asked:
            asked.append(outcome.events[-1][0])
            async with aiohttp.ClientSession() as session:
                body = {"prompt_id": outcome.prompt_id}
                await session.post(server.url("/interrupt"), json=body)

    outcome = server.run(prompt, press_stop)
    assert outcome.ended == "execution_interrupted", outcome.error
    ended = next(t for t, kind, _ in outcome.events if kind == "execution_interrupted")
    steps = [t for t, kind, data in outcome.events if kind == "progress"]
    print(f"interrupted {ended - asked[0]:.2f} s after asking ({len(steps)} progress events)")
    assert ended - asked[0] < 0.5 + 0.25 * os.getloadavg()[0], "machine load allowed for"
    run = server.get(f"/lowpeak/runs/{outcome.prompt_id}")
    assert run["status"] == "cancelled"
    again = server.run(workflow("text_to_video_light", seed=32))
    assert again.ended == "execution_success", again.error


def test_the_routes_tell_the_truth_about_a_run(server: Any) -> None:
    prompt = workflow("text_to_video_light", seed=41, prompt="an owl that no cache knows")
    outcome = server.run(prompt)
    run = server.get(f"/lowpeak/runs/{outcome.prompt_id}")
    assert run["status"] == "done"
    assert {"encode", "sample_low", "sample_high", "decode"} <= set(run["phases"])
    assert run["report"]["latents_sha256"] and run["phases"]["decode"]["measured"]["seconds"] > 0
    text = json.dumps(run)
    assert "owl" not in text and str(server.base) not in text and str(REPOSITORY) not in text
    state = server.get("/api/lowpeak/state")
    assert state["active"] is None and state["last"]["run_id"] == outcome.prompt_id
    assert state["checkpoints"] == [CHECKPOINT, WITH_REFERENCES]
    plan = server.post("/lowpeak/forecast", {"prompt": prompt})
    assert plan["fits"] and plan["asked"]["node_id"] == node_of(prompt, "LowpeakSample")
    what_if = {"prompt": prompt, "vram_gib": 8, "ram_gib": 16}
    assert server.post("/lowpeak/forecast", what_if)["total_seconds"] > 0
    with pytest.raises(urllib.error.HTTPError):
        server.post("/lowpeak/forecast", {"prompt": {}})


def test_free_memory_empties_the_cache_and_the_next_run_gives_the_same(server: Any) -> None:
    prompt = workflow("text_to_video_light", seed=51)
    first = server.run(prompt)
    server.post("/free", {"unload_models": True, "free_memory": True})
    second = server.run(copy.deepcopy(prompt))
    assert second.ended == "execution_success"
    cached = second.of("execution_cached")
    assert not cached or not cached[-1]["nodes"], "the cache was emptied"
    digests = [server.get(f"/lowpeak/runs/{run.prompt_id}")["report"]["latents_sha256"]
               for run in (first, second)]  # fmt: skip
    assert digests[0] == digests[1]


def worker_pids(server: Any) -> list[int]:
    """Worker processes of the server."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
            line = (folder / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        if parent == str(server.pid) and b"worker/boot.py" in line:
            found.append(int(folder.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_warm_worker_serves_the_next_run_and_leaves_when_memory_is_wanted(server: Any) -> None:
    assert worker_pids(server) == []
    first = server.run(workflow("text_to_video_light", seed=61, keep_warm=True))
    assert first.ended == "execution_success", first.error
    kept = worker_pids(server)
    assert len(kept) == 1
    assert server.run(workflow("text_to_video_light", seed=62, keep_warm=True)).ended
    assert worker_pids(server) == kept, "the same process took the second run"
    server.post("/free", {"unload_models": True})
    limit = time.monotonic() + 30
    while worker_pids(server) and time.monotonic() < limit:
        time.sleep(0.2)
    assert worker_pids(server) == [], "the 'free memory' button ends it"
    cold = server.run(workflow("text_to_video_light", seed=62, keep_warm=False))
    assert cold.ended == "execution_success" and worker_pids(server) == []


def test_help_pages_and_locales_are_served(server: Any) -> None:
    for name in sorted(NODE_IDS):
        page = server.get(f"/extensions/lowpeak/docs/{name}.md")
        assert page.startswith("# "), name
    texts = server.get("/i18n")
    for language in ("en", "zh"):
        assert set(texts[language]["nodeDefs"]) >= NODE_IDS


MEMORY_SCRIPT = """
import sys
from pathlib import Path
checkout, repository, tests = sys.argv[1:4]
sys.argv = ["x", "--cpu"]
sys.path.insert(0, checkout)
import comfy.options
comfy.options.enable_args_parsing()
import importlib.util
spec = importlib.util.spec_from_file_location(
    "pack", Path(repository) / "__init__.py", submodule_search_locations=[repository])
pack = sys.modules["pack"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pack)
spec = importlib.util.spec_from_file_location("fake", Path(tests) / "fake_engine.py")
fake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake)
from comfy import model_management as manager
from pack.nodes.memory import EngineMemory
engine = fake.FakeEngine("pack")
memory = EngineMemory(engine)
memory.track()
assert not manager.current_loaded_models, "nothing held, nothing registered"
engine.held = (3 << 30, 5 << 30)
memory.track(); memory.track()
assert len(manager.current_loaded_models) == 1
loaded = manager.current_loaded_models[0]
assert loaded.model_memory() == 5 << 30 and loaded.model_loaded_memory() == 3 << 30
manager.free_memory(1e30, manager.get_torch_device(), keep_loaded=[loaded])
assert engine.held == (3 << 30, 5 << 30), "kept when asked to"
manager.unload_all_models()
assert engine.held == (0, 0) and not manager.current_loaded_models
engine.held = (1 << 30, 0)
memory.track()
manager.free_memory(1 << 60, manager.get_torch_device())
assert engine.held == (0, 0), "another model's need releases ours"
assert memory.patcher.is_dynamic() is False
print("released", engine.released)
"""


def test_the_memory_manager_can_take_our_memory_back() -> None:
    checkout = Path(os.environ["COMFYUI_DIR"])
    python = helper("real_server").comfy_python(checkout)
    command = [
        python,
        "-c",
        MEMORY_SCRIPT,
        str(checkout),
        str(REPOSITORY),
        str(Path(__file__).parent),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=checkout)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "released 2" in done.stdout
