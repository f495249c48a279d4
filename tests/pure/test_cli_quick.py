"""A wrong option, and whatever needs no tensor, is answered without importing PyTorch.

That import takes seconds; the tests forbid it, so that they hold no clock. One process runs every
command line, and a finder notes which of them asked for torch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from lowpeak import cli

RUNNER = """
import contextlib, importlib.abc, io, json, sys
from lowpeak import cli

class Watch(importlib.abc.MetaPathFinder):
    asked = False
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            Watch.asked = True
            raise SystemExit(99)  # no except clause of a command hides this

sys.meta_path.insert(0, Watch())
found = []
for line in json.load(sys.stdin):
    Watch.asked = False
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.run(line)
        except SystemExit as left:
            code = left.code
    found.append([Watch.asked, code, out.getvalue() + err.getvalue()])
print(json.dumps(found))
"""

# (command line, exit code, part of what is said); {tmp} holds a file.txt and an empty folder.
LINES = [
    ("plan --vram-gib 8 --ram-gib 16", 0, "total"),
    ("plan --vram-gib 8 --ram-gib 16 --checkpoint {tmp}/none", 4, "checkpoint is not there"),
    ("predict --width nan", 2, "width"),
    ("optimize --device tpu", 2, "none of auto, cpu, cuda"),
    ("optimize", 2, "no checkpoint"),
    ("generate", 2, "give a prompt"),
    ("generate --prompt x", 2, "--checkpoint"),
    ("generate --prompt x --checkpoint {tmp}/none --out v.mp4", 4, "checkpoint is not there"),
    ("generate --prompt x --checkpoint {tmp}", 2, "give --out"),
    ("generate --prompt x --checkpoint {tmp} --out v.avi", 2, "does not end in .mp4"),
    ("generate --prompt x --checkpoint {tmp} --out v.mp4 --device tpu", 2, "none of auto"),
    ("generate --prompt x --checkpoint {tmp} --out v.mp4 --first-frame no.png", 2, "no.png"),
    ("generate --prompt x --checkpoint {tmp} --out v.mp4 --reference no.png", 2, "no.png"),
    ("generate --prompt x --checkpoint {tmp} --out v.mp4 --lora no.safetensors", 2, "not there"),
    ("generate --prompt x --checkpoint {tmp} --out v.mp4 --lora {tmp}", 2, "is a folder"),
    ("generate --prompt x --checkpoint {tmp} --out v.mp4 --stop-after lunch", 2, "none of encode"),
    ("generate --prompt x --checkpoint {tmp} --out {tmp}/file.txt/v.mp4", 2, "file.txt"),
    ("generate --resume {tmp}/none.mp4", 2, "none.mp4 is no file of an earlier run"),
    ("generate --resume {tmp}/file.txt", 2, "file.txt is no file of an earlier run"),
    ("generate --prompt-file /dev/zero", 2, "larger than 1 MiB"),
    ("generate --prompt-file {tmp}", 2, "cannot be read"),
    ("demo --device tpu", 2, "none of auto, cpu, cuda"),
    ("demo --out {tmp}/file.txt", 2, "file.txt"),
    ("toy-checkpoint {tmp}/toy --size huge", 2, "tiny, block, full"),
    ("toy-checkpoint {tmp}/toy --format gguf", 2, "edge-fp8-rowwise"),
    ("toy-checkpoint {tmp}/toy --device tpu", 2, "none of auto, cpu, cuda"),
    ("toy-checkpoint {tmp}/file.txt", 2, "file.txt"),
    ("doctor --checkpoint {tmp}/none", 4, "checkpoint is not there"),
    ("bench step", 2, "no checkpoint"),
    ("bench step --width 65 --checkpoint {tmp}", 2, "65"),
    ("bench step --repeats 0", 2, "--repeats"),
    ("bench encode --text-rows -3", 2, "--text-rows"),
    ("bench decode --repeats -1", 2, "--repeats"),
    ("bench stream --device tpu", 2, "none of auto"),
    ("bench encode --checkpoint {tmp}/none", 4, "checkpoint is not there"),
    ("bench decode --frames 3 --checkpoint {tmp}", 2, "17n+5"),
    ("bench grid --frames 3", 2, "17n+5"),
    ("bench forecast --checkpoint {tmp} --cases nonsense", 2, "nonsense"),
    ("bench forecast --cases step --attention sdpa", 2, "no attention 'sdpa'; known: cudnn"),
    ("bench forecast --cases step --device tpu", 2, "none of auto"),
    ("bench forecast --checkpoint {tmp} --attention cudnn", 2, "belong to --cases"),
    (
        "bench forecast --checkpoint {tmp} --cases step --out {tmp}/no/a.json",
        2,
        "there is no folder",
    ),
    ("models convert {tmp}/empty {tmp}/empty/../empty", 2, "is the checkpoint itself"),
    ("plan --card nonsense --ram-gib 16", 2, "known: h200, a100-80"),
    ("bench kernels", 2, "on a card"),
    ("models list {tmp}", 4, "missing"),
    ("models list {tmp}/none", 4, "none is not there"),
    ("models pull {tmp} --only nonsense", 2, "nonsense"),
    ("models verify {tmp}/none", 4, "not there"),
    ("models verify {tmp}/empty", 4, "no weight file is here"),
    ("models convert {tmp}/none {tmp}/out", 4, "not there"),
    ("models convert {tmp} {tmp}/out --format gguf", 2, "edge-fp8"),
    ("models convert {tmp} {tmp}/out --device tpu", 2, "none of auto, cpu, cuda"),
    ("models convert {tmp} {tmp}/out --quality best", 2, "best"),
    ("inspect-lora {tmp}/none", 4, "none"),
    ("inspect-lora {tmp}/file.txt", 4, "file.txt"),
]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[bool, int, str]]:
    folder = tmp_path_factory.mktemp("quick")
    (folder / "file.txt").write_text("words, no weights")
    (folder / "empty").mkdir()
    lines = [line.format(tmp=folder).split() for line, _, _ in LINES]
    environment = {name: value for name, value in os.environ.items() if name[:8] != "LOWPEAK_"}
    environment |= {"HOME": str(folder), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-c", RUNNER], input=json.dumps(lines), capture_output=True, text=True,
        check=False, env=environment, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return {line: tuple(answer) for (line, _, _), answer in zip(LINES, found, strict=True)}


@pytest.mark.parametrize(("line", "code", "said"), LINES, ids=[line for line, _, _ in LINES])
def test_it_answers_without_pytorch(
    answers: dict[str, tuple[bool, int, str]], line: str, code: int, said: str
) -> None:
    asked, got, text = answers[line]
    assert not asked, f"`lowpeak {line}` imports torch before it answers"
    assert (got, said in text) == (code, True), text


def test_every_command_is_among_them() -> None:
    def names(app: typer.Typer, before: str = "") -> list[str]:
        own = [f"{before}{item.name}" for item in app.registered_commands]
        groups = [names(item.typer_instance, f"{item.name} ") for item in app.registered_groups]
        return own + [name for group in groups for name in group]

    lines = [f"{line} " for line, _, _ in LINES]
    left = [name for name in names(cli.app) if not any(x.startswith(f"{name} ") for x in lines)]
    assert not left


def test_models_that_are_here_are_listed_without_pytorch(tmp_path: Path) -> None:
    from lowpeak.engine.checkpoint.toy import write_toy_checkpoint

    for layout in ("edge-int8", "openvdn", "comfy"):
        write_toy_checkpoint(tmp_path / layout, size="tiny", format=layout, seed=1)
    environment = {name: value for name, value in os.environ.items() if name[:8] != "LOWPEAK_"}
    folders = [
        ["models", "list", str(tmp_path / name)] for name in ("edge-int8", "openvdn", "comfy")
    ]
    done = subprocess.run(
        [sys.executable, "-c", RUNNER], input=json.dumps(folders), capture_output=True, text=True,
        check=True, env=environment,
    )  # fmt: skip
    for (asked, code, text), (_, _, folder) in zip(json.loads(done.stdout), folders, strict=True):
        assert not asked and code == 4 and folder in text, text
