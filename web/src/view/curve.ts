/** Live curves of VRAM and RAM, with a band a phase. */

import uPlot from "uplot";
import type { CurvePoint, Run } from "../types";
import { clock, freeBytes, phaseName } from "../words";

const GIB = 2 ** 30;
const HEIGHT_PX = 130;

export class Curve {
  private plot: uPlot | undefined;
  private points: CurvePoint[] = [];
  /** Ends of memory that are near enough to matter: [GiB, colour]. */
  private limits: [number, string][] = [];
  private readonly resize: ResizeObserver;

  constructor(private readonly place: HTMLElement) {
    this.resize = new ResizeObserver(() => {
      const width = this.place.clientWidth;
      if (width) this.plot?.setSize({ width, height: HEIGHT_PX });
    });
    this.resize.observe(place);
  }

  show(run: Run): void {
    this.points = run.curve;
    this.limits = [];
    for (const axis of ["vram", "ram"] as const) {
      const free = freeBytes(run.plan.snapshot, axis);
      const most = Math.max(0, ...this.points.map((point) => point[axis === "vram" ? 2 : 3] ?? 0));
      if (free != null && (axis === "vram" || most > 0.6 * free))
        this.limits.push([free / GIB, `--lp-${axis}`]);
    }
    const gib = (bytes: number | null) => (bytes == null ? null : bytes / GIB);
    const data: uPlot.AlignedData = [
      this.points.map((point) => point[0]),
      this.points.map((point) => gib(point[2])),
      this.points.map((point) => gib(point[3])),
    ];
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

  private options(): uPlot.Options {
    const axis = { stroke: () => this.colour("--lp-dim"), grid: { show: false }, font: "11px sans-serif" };
    return {
      width: this.place.clientWidth,
      height: HEIGHT_PX,
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: false },
        y: { range: (_, __, max) => [0, Math.max(max, 0.1, ...this.limits.map(([gib]) => gib)) * 1.2] },
      },
      axes: [
        { ...axis, size: 24, values: (_, ticks) => ticks.map((tick) => clock(tick)) },
        { ...axis, size: 54, values: (_, ticks) => ticks.map((tick) => `${tick} GiB`) },
      ],
      series: [
        {},
        { label: "VRAM", stroke: () => this.colour("--lp-vram"), width: 1.8, points: { show: false } },
        { label: "RAM", stroke: () => this.colour("--lp-ram"), width: 1.8, points: { show: false } },
      ],
      hooks: { drawClear: [(plot) => this.bands(plot)] },
    };
  }

  private bands(plot: uPlot): void {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.font = `${10 * devicePixelRatio}px sans-serif`;
    this.phases().forEach(([phase, from, to], at) => {
      const left = plot.valToPos(from, "x", true);
      const width = plot.valToPos(to, "x", true) - left;
      ctx.fillStyle = this.colour("--lp-line");
      ctx.globalAlpha = at % 2 ? 0.25 : 0.5;
      ctx.fillRect(left, bbox.top, width, bbox.height);
      ctx.globalAlpha = 1;
      ctx.fillStyle = this.colour("--lp-dim");
      const name = phaseName(phase, this.points.map((point) => point[1]));
      if (ctx.measureText(name).width < width - 6)
        ctx.fillText(name, left + 3 * devicePixelRatio, bbox.top + 10 * devicePixelRatio);
    });
    for (const [gib, colour] of this.limits) {
      const y = plot.valToPos(gib, "y", true);
      ctx.strokeStyle = this.colour(colour);
      ctx.setLineDash([4, 4]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
    }
    ctx.restore();
  }

  private phases(): [string, number, number][] {
    const found: [string, number, number][] = [];
    for (const [seconds, phase] of this.points) {
      const last = found.at(-1);
      if (last) last[2] = seconds;
      if (last?.[0] !== phase) found.push([phase, seconds, seconds]);
    }
    return found;
  }
}
