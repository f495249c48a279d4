"""Conversion of a synthetic OpenVDN checkpoint: its rate beside the disk's, its memory, its codes.

    python benchmarks/convert_rate.py FOLDER --out rows.json [--blocks 10] [--device cuda]

Writes the source (bfloat16, 1.4 GB a block), measures the disk (ordinary writes, and the
converter's own threads reading and writing), converts, and compares rows with another
implementation of the quantisation. Converter and threads run in child processes inside a cgroup of
4 GiB (as root; else resident bytes alone are reported). Every write is timed until the disk has it.
A row says what each stage did and waited for, and how long the slower of reading and writing alone
would have taken. Rows are written as they come.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

CGROUP = Path("/sys/fs/cgroup")
HEADER_FILES = 52  # 50 blocks, root, and a table
SAMPLED = ("attn.orig.to_q", "attn.orig.to_out.0", "ff.net.0.proj", "ff.net.2")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--size", default="full")
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--device")
    parser.add_argument("--formats", default="edge-fp8-rowwise,edge-int8")
    parser.add_argument("--ram-gib", type=float, default=4)
    parser.add_argument("--seconds", type=float, default=600, help="No case begins after this.")
    parser.add_argument("--child", nargs=2, metavar=("TARGET", "FORMAT"))
    parser.add_argument("--rates", action="store_true", help="Only the converter's threads.")
    options = parser.parse_args()
    if options.rates:
        print(json.dumps(lane_rates(options.folder, options.size, options.device)))
        return
    if options.child:
        child(options.folder, Path(options.child[0]), options.child[1], options.device)
        return
    begin = time.perf_counter()
    found: dict[str, Any] = {"blocks": options.blocks, "device": options.device or "cpu"}

    def keep(**parts: Any) -> None:
        found.update(parts, seconds=time.perf_counter() - begin)
        print(json.dumps(parts), flush=True)
        options.out.write_text(json.dumps(found, indent=1))

    source = options.folder / f"openvdn-{options.size}-{options.blocks}"
    keep(source=written_source(source, options))
    keep(open_headers=header_seconds(options.folder / "headers"))
    keep(disk_bytes_per_second=write_rate(options.folder / "rate.safetensors", options.size))
    rates = in_child(["--rates", "--size", options.size], source, options)
    keep(rates=rates, system={"kernel": os.uname().release, "cpus": os.cpu_count()})
    rows: list[dict[str, Any]] = []
    for format in options.formats.split(","):
        if time.perf_counter() - begin > options.seconds:
            row: dict[str, Any] = {"error": "no time left"}
        else:
            row = converted(source, options.folder / f"out-{format}", format, options)
            if "error" not in row:
                disk = max(found["disk_bytes_per_second"], rates.get("write_bytes_per_second", 0))
                row["of_disk_rate"] = row["bytes_per_second"] / disk
                row["floor_seconds"] = floor_seconds(row, rates, disk)
        rows.append({"format": format, **row})
        keep(rows=rows)
    # Disks that may burst are slower afterwards: a ratio should be read beside both rates.
    keep(disk_bytes_per_second_after=write_rate(options.folder / "rate.safetensors", options.size))


def written_source(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The OpenVDN source, made once."""
    from lowpeak.engine.checkpoint.toy import write_toy_checkpoint

    begin = time.perf_counter()
    if not folder.is_dir():
        write_toy_checkpoint(
            folder, size=options.size, format="openvdn", seed=1, blocks=options.blocks,
            device=options.device or "cpu",
        )  # fmt: skip
        os.sync()  # its writes must not run into what is measured next
    return {"bytes": folder_bytes(folder), "seconds": time.perf_counter() - begin}


def header_seconds(folder: Path) -> dict[str, Any]:
    """Opening a checkpoint of 52 files: the first time, and the median of five more."""
    from lowpeak.engine.checkpoint.index import open_checkpoint
    from lowpeak.engine.checkpoint.toy import write_toy_checkpoint

    if not folder.is_dir():
        write_toy_checkpoint(folder, size="tiny", blocks=HEADER_FILES - 2)
    seconds = []
    for _ in range(6):
        begin = time.perf_counter()
        open_checkpoint(folder)
        seconds.append(time.perf_counter() - begin)
    return {"first_seconds": seconds[0], "median_seconds": statistics.median(seconds[1:])}


def write_rate(path: Path, size: str) -> float:
    """Bytes a second that the disk takes from ordinary writes: four blocks' worth."""
    import torch

    from lowpeak.engine.checkpoint.header import write_tensors

    tensors = {"codes": torch.randint(0, 255, (block_bytes(size),), dtype=torch.uint8)}
    begin, total = time.perf_counter(), 0
    paths = [path.with_name(f"{i}-{path.name}") for i in range(4)]
    for item in paths:
        total += write_tensors(item, tensors)
        flush(item)
    seconds = time.perf_counter() - begin
    for item in paths:
        item.unlink()
    return total / seconds


def block_bytes(size: str) -> int:
    """Bytes of a converted block, near enough."""
    return 433_000_000 if size != "tiny" else 4_000_000


def lane_rates(source: Path, size: str, device: str | None) -> dict[str, Any]:
    """The converter's threads alone, bytes a second: writing four blocks' worth, reading them back
    from the disk, and reading the source's first blocks as they come and once more (cached)."""
    import torch

    from lowpeak.engine.checkpoint.arena import Arena
    from lowpeak.engine.checkpoint.header import read_header
    from lowpeak.engine.checkpoint.index import open_checkpoint
    from lowpeak.engine.checkpoint.lanes import Lanes
    from lowpeak.engine.checkpoint.sources import Source

    found: dict[str, Any] = {}
    codes = torch.randint(0, 255, (block_bytes(size),), dtype=torch.uint8, device=device)
    paths = [source.parent / f"lane-{i}.safetensors" for i in range(4)]
    checkpoint = open_checkpoint(source)
    reader: Any = checkpoint.reader
    count = min(2, checkpoint.config.layers)
    blocks = [part.sources for block in range(count) for part in reader.parts(block)]
    with Lanes(device) as lanes:
        arena = Arena(device)
        lanes.store(
            paths[0], {"codes": codes}
        )  # threads, buffers and the arena are there after this
        lanes.load({"codes": Source(read_header(paths[0]), "codes")}, arena)

        def rate(name: str, work: Callable[[], int]) -> None:
            before, begin = dict(lanes.meter.values), time.perf_counter()
            done = work()
            found[f"{name}_bytes_per_second"] = done / (time.perf_counter() - begin)
            values = lanes.meter.values.items()
            found[f"{name}_threads"] = {k: v - before.get(k, 0) for k, v in values}

        def read(groups: list[dict[str, Source]]) -> int:
            return sum(
                sum(tensor.nbytes for tensor in lanes.load(group, arena).values())
                for group in groups
            )

        rate("write", lambda: sum(lanes.store(path, {"codes": codes}) for path in paths))
        headers = [read_header(path) for path in paths]
        rate("read_disk", lambda: read([{"codes": Source(file, "codes")} for file in headers]))
        rate("read_first", lambda: read(blocks))
        rate("read_again", lambda: read(blocks))
    for path in paths:
        path.unlink()
    return found


def floor_seconds(
    row: dict[str, Any], rates: dict[str, Any], write_rate: float
) -> dict[str, float]:
    """Seconds of reading and of writing alone, at the rates of this run. Reading: the bytes that
    came from the disk at its rate, the others at that of the cache."""
    writing = row["bytes"] / write_rate
    if "error" in rates:
        return {"writing": writing}
    disk = row["stages"].get("read.disk_bytes", 0)
    cached = row["stages"]["read.bytes"] - disk
    reading = disk / rates["read_disk_bytes_per_second"]
    reading += cached / max(rates[f"read_{name}_bytes_per_second"] for name in ("first", "again"))
    return {"reading": reading, "writing": writing, "slower": max(reading, writing)}


def converted(
    source: Path, target: Path, format: str, options: argparse.Namespace
) -> dict[str, Any]:
    """One conversion in a process of its own, and a look at what it wrote."""
    shutil.rmtree(target, ignore_errors=True)
    row = in_child(["--child", str(target), format], source, options)
    if "error" in row:
        return row
    try:
        codes = compared(source, target, options.device)
    except Exception as failed:  # the measurement stands without the comparison
        codes = {"error": f"{type(failed).__name__}: {failed}"}
    return {**row, "codes": codes}


def in_child(arguments: list[str], source: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The last line of this script in a process of its own, under the limit."""
    command = [sys.executable, __file__, str(source), *arguments]
    if options.device:
        command += ["--device", options.device]
    begin = time.perf_counter()
    with cgroup(options.ram_gib) as (join, peak):
        done = subprocess.run(command, capture_output=True, text=True, preexec_fn=join)
        capped = peak()
    if done.returncode:
        return {"error": (done.stderr or done.stdout)[-1500:], "returncode": done.returncode}
    row: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    limit = options.ram_gib if capped is not None else None
    whole = time.perf_counter() - begin
    return {**row, "process_seconds": whole, "cgroup_peak_bytes": capped, "cgroup_gib": limit}


def child(source: Path, target: Path, format: str, device: str | None) -> None:
    """Convert, wait for the disk, print a row."""
    from lowpeak.engine.checkpoint.convert import convert

    if device == "cuda":
        import torch

        torch.zeros(1, device=device)  # the context is not the converter's time
    begin = time.perf_counter()
    result = convert(source, target, format=format, device=device)
    computed = time.perf_counter() - begin
    for path in target.rglob("*"):
        if path.is_file():
            flush(path)
    seconds = time.perf_counter() - begin
    print(
        json.dumps(
            {
                "seconds": seconds,
                "seconds_before_flush": computed,
                "bytes": result["bytes"],
                "source_bytes": result["source_bytes"],
                "bytes_per_second": result["bytes"] / seconds,
                "source_bytes_per_second": result["source_bytes"] / seconds,
                "peak_resident_bytes": peak_resident_bytes(),
                "vram_peak_bytes": vram_peak_bytes(device),
                "stages": result["stages"],
            }
        )
    )


def compared(source: Path, target: Path, device: str | None) -> dict[str, Any]:
    """Sampled rows against another implementation: codes and scales that differ, of how many."""
    import torch

    from lowpeak.engine.checkpoint.index import open_checkpoint

    origin, made = open_checkpoint(source), open_checkpoint(target)
    if device is not None:
        origin = replace(origin, reader=replace(origin.reader, device=device))  # type: ignore[type-var]
    blocks = sorted({0, origin.config.layers - 1})
    name = "nothing"
    generator = torch.Generator().manual_seed(3)
    wrong, count, largest, scales = 0, 0, 0, 0
    for block in blocks:
        plain, stored = origin.reader.block_tensors(block), made.block_tensors(block)
        for linear in SAMPLED:
            weight = plain[f"{linear}.weight"]
            name, quantise = other_quantiser(made.weight_format, weight.shape[1])
            rows = torch.randint(0, weight.shape[0], (64,), generator=generator)
            codes, scale = quantise(weight[rows.to(weight.device)].cpu())
            suffix = "weight_int8" if codes.dtype == torch.int8 else "weight_fp8"
            found = stored[f"{linear}.{suffix}"][rows]
            one, two = (t.view(torch.int8).int() for t in (codes, found))
            wrong += int((one != two).sum())
            largest = max(largest, int((one - two).abs().max()))
            count += codes.numel()
            theirs = stored[f"{linear}.weight_scale"].reshape(-1)
            scales += int((theirs[rows] != scale.reshape(-1)).sum())
    return {"against": name, "different": wrong, "of": count, "largest_step": largest,
            "scales_different": scales, "blocks": blocks}  # fmt: skip


def other_quantiser(kind: str, width: int) -> tuple[str, Callable[..., Any]]:
    """comfy-kitchen's for int8, plain arithmetic for FP8 rows; ours where it is not installed, and
    for miniature widths."""
    import torch

    def fp8(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = (weight.abs().amax(dim=1).float() / 448).clamp_min(1e-12)
        divided = weight / scale.to(weight.dtype)[:, None]
        return divided.float().clamp(-448, 448).to(torch.float8_e4m3fn), scale

    if kind != "int8-convrot":
        return "plain arithmetic", fp8
    try:
        if width % 256:
            raise ImportError("comfy-kitchen rotates 256 channels")
        from comfy_kitchen.backends.eager.quantization import quantize_int8_convrot_weight
    except ImportError:
        from lowpeak.kernels.reference.quantise import quantise_int8_convrot

        return "own reference, whole rows", quantise_int8_convrot
    return "comfy-kitchen eager", lambda weight: quantize_int8_convrot_weight(weight, 256)


@contextmanager
def cgroup(ram_gib: float) -> Iterator[tuple[Callable[[], None] | None, Callable[[], int | None]]]:
    """(what a child calls to join, a reader of the peak) of a cgroup, version 2 or 1; Nones where
    there is none to be had."""
    second = (CGROUP / "cgroup.controllers").is_file()
    group = (CGROUP if second else CGROUP / "memory") / f"lowpeak-convert-{os.getpid()}"
    limit, most = ("memory.max", "memory.peak") if second else (
        "memory.limit_in_bytes", "memory.max_usage_in_bytes")  # fmt: skip
    try:
        if second:  # a group has a controller only when the one above it passes it on
            (CGROUP / "cgroup.subtree_control").write_text("+memory")
        group.mkdir()
        (group / limit).write_text(str(int(ram_gib * (1 << 30))))
        if second and (group / "memory.swap.max").exists():
            (group / "memory.swap.max").write_text("0")
    except OSError as refused:
        with suppress(OSError):
            group.rmdir()
        print(f"    no cgroup: {refused}", flush=True)
        yield None, lambda: None
        return

    def join() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    def peak() -> int | None:
        return int((group / most).read_text()) if (group / most).exists() else None

    try:
        yield join, peak
    finally:
        for _ in range(50):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.1)


def vram_peak_bytes(device: str | None) -> int | None:
    """The allocator's high-water mark; None without a card."""
    import torch

    return torch.cuda.max_memory_reserved() if device == "cuda" else None


def peak_resident_bytes() -> int:
    """The high-water mark of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def flush(path: Path) -> None:
    """Wait until the disk has the file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())
