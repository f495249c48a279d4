"""The command line: exit codes, JSON on standard output, messages on standard error, no torch."""

from __future__ import annotations

import io
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lowpeak import cli
from lowpeak.cli_base import printable
from lowpeak.engine import snapshot
from lowpeak.engine.inputs import parse_loras, read_prompt
from lowpeak.engine.snapshot import HardwareSnapshot
from lowpeak.engine.units import GIB

PLAN = ["plan", "--vram-gib", "8", "--ram-gib", "16"]
COMMANDS = [
    *("plan", "predict", "optimize", "generate", "demo", "toy-checkpoint", "doctor"),
    *("inspect-lora", "bench step", "bench grid"),
    *("models list", "models pull", "models verify", "models convert"),
]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(list(arguments))
    said = capsys.readouterr()
    return code, said.out, said.err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = run(capsys, *arguments, "--json")
    assert len(out.splitlines()) == 1, "one JSON document, on one line"
    return code, json.loads(out)


def test_plan_json_has_the_form_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    code, document = run_json(capsys, *PLAN)
    assert code == 0 and document["fits"] is True and document["changes_arithmetic"] is False
    assert document["request"].items() >= {
        "width": 1344, "height": 768, "frames": 243, "quality": "light", "seconds": 10.125
    }.items()  # fmt: skip
    assert {"latent_frames", "tokens_per_frame", "video_tokens", "audio_latents"} <= set(
        document["geometry"]
    )
    assert document["total_seconds"] == pytest.approx(
        sum(phase["seconds"] for phase in document["phases"])
    )
    names = [phase["phase"] for phase in document["phases"]]
    assert names == ["encode", "sample_low", "upscale", "sample_high", "decode"]
    for phase in document["phases"]:
        assert {
            "vram_peak_bytes", "ram_peak_bytes", "seconds", "steps", "seconds_per_step",
            "limited_by", "placement", "terms",
        } <= set(phase)  # fmt: skip
        for term in phase["terms"]:
            assert set(term) == {"name", "value", "unit", "source"}
    high = document["phases"][3]["placement"]
    assert {"keys", "residual", "resident_blocks", "pinned_blocks", "disk_blocks",
            "transfer_slots"} <= set(high)  # fmt: skip
    assert high["resident_blocks"] + high["pinned_blocks"] + high["disk_blocks"] == 50


def test_a_refusal_is_a_document_and_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    code, document = run_json(capsys, "plan", "--vram-gib", "2", "--ram-gib", "8")
    assert code == 3 and document["fits"] is False
    for short in document["short"]:
        assert short["axis"] in ("vram", "ram", "disk")
        assert short["shortfall_bytes"] == short["need_bytes"] - short["have_bytes"]
    smaller = document["fits_instead"][0]
    again, planned = run_json(
        capsys, "plan", "--vram-gib", "2", "--ram-gib", "8", "--width", str(smaller["width"]),
        "--height", str(smaller["height"]), "--frames", str(smaller["frames"]),
    )  # fmt: skip
    assert again == 0 and planned["fits"], "what is offered instead must really plan"


def test_plan_needs_neither_torch_nor_a_second() -> None:
    code = "import sys; from lowpeak import cli; code = cli.run(sys.argv[1:]); " \
        "print([m for m in ('torch', 'numpy', 'rich', 'av') if m in sys.modules], " \
        "file=sys.stderr); raise SystemExit(code)"  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", code, *PLAN, "--json"], capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0 and json.loads(done.stdout)["fits"]
    assert done.stderr.strip() == "[]", "plan imported something heavy"
    # Processor time, so that a busy machine does not fail it; the bound on the wall is 0.4 s.
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 0.8, f"plan took {spent:.2f} s of processor time"


def test_sizes_off_the_grid_are_snapped_and_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(
        capsys, *PLAN, "--width", "1340", "--height", "770", "--frames", "240", "--json"
    )
    document = json.loads(out)
    assert code == 0
    assert [document["request"][key] for key in ("width", "height", "frames")] == [1344, 768, 243]
    for said in ("width 1340 px", "using 1344 px", "height 770 px", "using 768 px",
                 "240 frames", "using 243 frames"):  # fmt: skip
        assert said in err and said in " ".join(document["notices"])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--width", "nan"], "width"),
        (["--width", "inf"], "width"),
        (["--height", "-64"], "height"),
        (["--width", "64"], "width"),
        (["--height", "1e9"], "height"),
        (["--width", "4096", "--height", "256"], "aspect"),
        (["--frames", "5"], "frames"),
        (["--frames", "99999"], "frames"),
        (["--seconds", "0"], "seconds"),
        (["--seconds", "nan"], "seconds"),
        (["--seconds", "3", "--frames", "56"], "frames"),
        (["--quality", "ultra"], "quality"),
        (["--base-steps", "0"], "base_steps"),
        (["--refine-steps", "40"], "refine_steps"),
        (["--vram-gib", "0"], "vram"),
        (["--vram-gib", "-8"], "vram"),
        (["--ram-gib", "nan"], "ram"),
        (["--link-gbps", "0"], "link"),
        (["--capability", "eight"], "capability"),
        (["--system", "amiga"], "system"),
        (["--card", "voodoo 2"], "card"),
    ],
)
def test_impossible_values_are_request_errors(
    capsys: pytest.CaptureFixture[str], arguments: list[str], named: str
) -> None:
    code, out, err = run(capsys, *PLAN, *arguments, "--json")
    document = json.loads(out)
    assert code == 2 and document["error"] == "RequestError", document
    assert named in document["message"] and document["message"] in err


@pytest.mark.parametrize(
    "arguments",
    [["plan", "--wdith", "3"], ["plan", "--width", "abc"], ["nonsense"], ["toy-checkpoint"]],
)
def test_bad_usage_exits_2_and_still_answers_json(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 2 and json.loads(out)["error"] == "RequestError" and err.startswith("lowpeak: ")


def test_no_arguments_say_where_the_commands_are_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = run(capsys)
    assert code == 2 and not out and err == "lowpeak: give a command; `lowpeak --help` lists them\n"


def test_a_plan_for_no_card_asks_for_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without = HardwareSnapshot("linux", "", None, 0, 0, 32 * GIB, 20 * GIB)
    monkeypatch.setattr(snapshot, "snapshot_from_options", lambda *_: without)
    code, document = run_json(capsys, "plan")
    assert code == 2 and document["error"] == "RequestError"
    assert "--vram-gib or --card" in document["message"]


def test_every_known_card_is_planned_for_by_its_name_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for card in ("h200", "rtx-4090"):
        code, document = run_json(capsys, "plan", "--card", card, "--ram-gib", "64")
        assert code == 0 and document["fits"], document


def test_what_the_file_system_refuses_is_an_error_and_no_traceback(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    code, document = run_json(capsys, "demo", "--out", str(tmp_path / "file"))
    assert code == 2 and document["error"] == "RequestError"
    assert str(tmp_path / "file") in document["message"]


def test_models_of_an_unknown_quality_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, document = run_json(capsys, "models", "list", str(tmp_path), "--quality", "best")
    assert code == 2 and "light, medium, high, max" in document["message"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_interface_takes_json(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code, out, _ = run(capsys, *name.split(), "--help")
    assert code == 0 and "--json" in out
    assert out.isascii()


def test_a_missing_checkpoint_is_exit_code_4(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, document = run_json(
        capsys, "generate", "--prompt", "", "--out", str(tmp_path / "v.mp4"), "--checkpoint",
        str(tmp_path / "none"),
    )  # fmt: skip
    assert code == 4 and document["error"] == "CheckpointError"
    assert str(tmp_path / "none") in document["message"]
    assert list(tmp_path.iterdir()) == []


def test_text_for_a_terminal_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, *PLAN)
    assert out.isascii() and "sample_high" in out and "total" in out


def test_a_console_that_lacks_a_letter_of_a_path_gets_it_escaped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", narrow)
    print(printable("here \u732b.safetensors, 4.85 GiB, na\u00efve"))
    narrow.flush()
    assert narrow.buffer.getvalue().decode("cp1252") == (
        "here \\u732b.safetensors, 4.85 GiB, na\u00efve\n"
    )


def test_an_interrupt_is_exit_code_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "build_request", interrupt)
    code, document = run_json(capsys, *PLAN)
    assert code == 130 and document["error"] == "Cancelled"


def test_a_prompt_comes_from_one_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_bytes("a fox \u2603\n".encode())
    assert read_prompt(None, file, required=True) == "a fox \u2603"
    assert read_prompt("", None, required=True) == ""
    out = str(tmp_path / "v.mp4")
    code, _, err = run(capsys, "generate", "--out", out)
    assert code == 2 and "--prompt" in err
    code, _, err = run(
        capsys, "generate", "--out", out, "--prompt", "x", "--prompt-file", str(file)
    )
    assert code == 2 and "not both" in err
    file.write_bytes(b"\xff\xfe\x00")
    code, _, err = run(capsys, "generate", "--out", out, "--prompt-file", str(file))
    assert code == 2 and "UTF-8" in err


def test_a_lora_has_a_strength_behind_its_last_colon() -> None:
    first, second, third = parse_loras(["a.safetensors", "b.safetensors:0.5", "C:/x.safetensors"])
    assert (first.file, first.strength) == ("a.safetensors", 1.0)
    assert (second.file, second.strength) == ("b.safetensors", 0.5)
    assert (third.file, third.strength) == ("C:/x.safetensors", 1.0)
