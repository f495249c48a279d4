/** The live curve of one memory, a band a phase: ours at the bottom, other programs', evictable on top. */

import uPlot from "uplot";
import type { Axis, CurvePoint, Run } from "../types";
import { clock, freeBytes, phaseName } from "../words";

const GIB = 2 ** 30;
const HEIGHT_PX = 104;

/** Bytes on one axis at one moment; null is unknown. */
export interface Shares {
  ours: number | null;
  other: number | null;
  evictable: number | null;
}

export function sharesOf(point: CurvePoint | undefined, axis: Axis): Shares {
  const [, , vram, ram, vramOther, vramEvictable, ramOther, ramEvictable] = point ?? [0, ""];
  return axis === "vram"
    ? { ours: vram ?? null, other: vramOther ?? null, evictable: vramEvictable ?? null }
    : { ours: ram ?? null, other: ramOther ?? null, evictable: ramEvictable ?? null };
}

/** Where memory ends for what is drawn: all of it with other programs, else what was free. */
export function endBytes(run: Run, axis: Axis): number | null {
  const whole = run.plan.snapshot?.[`${axis}_total_bytes`];
  const shown = run.curve.some((point) => sharesOf(point, axis).other != null);
  return (shown ? whole : freeBytes(run.plan.snapshot, axis)) ?? null;
}

/** Tops of the three areas, the highest first; an unknown share leaves a gap. Bytes. */
export function stacked(points: CurvePoint[], axis: Axis): (number | null)[][] {
  const all = points.map((point) => sharesOf(point, axis));
  const top = (...keys: (keyof Shares)[]) =>
    all.map((one) => keys.some((key) => one[key] == null) ? null :
      keys.reduce((sum, key) => sum + one[key]!, 0));
  return [top("ours", "other", "evictable"), top("ours", "other"), top("ours")];
}

export class Curve {
  private plot: uPlot | undefined;
  private run: Run | undefined;
  private readonly resize: ResizeObserver;

  constructor(private readonly place: HTMLElement, private readonly axis: Axis) {
    this.resize = new ResizeObserver(() => {
      const width = this.place.clientWidth;
      if (width) this.plot?.setSize({ width, height: HEIGHT_PX });
    });
    this.resize.observe(place);
  }

  show(run: Run): void {
    this.run = run;
    const series = stacked(run.curve, this.axis);
    const data = [
      run.curve.map((point) => point[0]),
      ...series.map((values) => values.map((value) => (value == null ? null : value / GIB))),
    ] as uPlot.AlignedData;
    if (this.plot) this.plot.setData(data);
    else if (this.place.clientWidth) this.plot = new uPlot(this.options(), data, this.place);
  }

  /** Colours come from the theme: draw again after it changed. */
  redraw(): void {
    this.plot?.redraw();
  }

  close(): void {
    this.resize.disconnect();
    this.plot?.destroy();
    this.plot = undefined;
  }

  private colour(name: string): string {
    return getComputedStyle(this.place).getPropertyValue(name).trim() || "#888";
  }

  private end(): number {
    return ((this.run && endBytes(this.run, this.axis)) ?? 0) / GIB;
  }

  private options(): uPlot.Options {
    const axis = { stroke: () => this.colour("--lp-dim"), grid: { show: false }, font: "11px sans-serif" };
    const line = (name: string, width: number): uPlot.Series =>
      ({ stroke: () => this.colour(name), width, points: { show: false } });
    const ours = `--lp-${this.axis}`;
    return {
      width: this.place.clientWidth,
      height: HEIGHT_PX,
      legend: { show: false },
      cursor: { show: false },
      padding: [6, 6, 0, 0],
      scales: {
        x: { time: false },
        y: { range: (_, __, max) => [0, Math.max(max ?? 0, 0.1, this.end()) * 1.08] },
      },
      axes: [
        { ...axis, size: 24, values: (_, ticks) => ticks.map((tick) => clock(tick)) },
        { ...axis, size: 54, space: 26, values: (_, ticks) => ticks.map((tick) => `${tick} GiB`) },
      ],
      series: [{}, line("--lp-disk", 1), line("--lp-disk", 1),
        { ...line(ours, 1.8), fill: () => this.colour(ours) + "b0" }],
      bands: [{ series: [1, 2], fill: () => this.colour("--lp-disk") + "48" },
        { series: [2, 3], fill: () => this.colour("--lp-disk") + "cc" }],
      hooks: { drawClear: [(plot) => this.bands(plot)], draw: [(plot) => this.limit(plot)] },
    };
  }

  private bands(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.font = `${10 * devicePixelRatio}px sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    this.phases().forEach(([phase, from, to], at) => {
      const left = plot.valToPos(from, "x", true);
      const width = plot.valToPos(to, "x", true) - left;
      ctx.fillStyle = this.colour("--lp-line");
      ctx.globalAlpha = at % 2 ? 0.25 : 0.5;
      ctx.fillRect(left, bbox.top, width, bbox.height);
      ctx.globalAlpha = 1;
      ctx.fillStyle = this.colour("--lp-dim");
      const name = phaseName(phase, this.run?.curve.map((point) => point[1]));
      if (ctx.measureText(name).width < width - 6 * devicePixelRatio)
        ctx.fillText(name, left + 3 * devicePixelRatio, bbox.top + 10 * devicePixelRatio);
    });
    ctx.restore();
  }

  /** A dashed line where memory ends. */
  private limit(plot: uPlot): void {
    if (!this.end()) return;
    const { ctx, bbox } = plot;
    const y = plot.valToPos(this.end(), "y", true);
    ctx.save();
    ctx.strokeStyle = this.colour("--lp-bad");
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.restore();
  }

  private phases(): [string, number, number][] {
    const found: [string, number, number][] = [];
    for (const [seconds, phase] of this.run?.curve ?? []) {
      const last = found.at(-1);
      if (last) last[2] = seconds;
      if (last?.[0] !== phase) found.push([phase, seconds, seconds]);
    }
    return found;
  }
}
