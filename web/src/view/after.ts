/** The last run: measured beside forecast, differences in words, kernels, LoRAs, the report. */

import { runRows } from "../bars";
import { shareable } from "../state";
import { commas, t } from "../texts";
import type { Run } from "../types";
import { differences, runHead, sizeText } from "../words";
import { drawLegend, drawRows } from "./bars";
import { engine, fill, h, section } from "./dom";

interface Lora {
  file?: string;
  tensors?: number;
  bound_tensors?: number;
  complete?: boolean;
  skipped?: { reason?: string; tensors?: string[]; matters?: boolean }[];
}

/** What the engine says of a stage; older reports hold fewer of these. */
interface Kernel {
  implementation?: string;
  reason?: string;
  chosen?: Record<string, string>;
  because?: Record<string, string>;
  against?: Record<string, string>;
  changes_arithmetic?: string[];
}

export class After {
  readonly box: HTMLElement;
  private readonly body: HTMLElement;

  constructor() {
    [this.box, this.body] = section(t("section.last"));
    this.box.classList.add("lp-last");
    this.box.hidden = true;
  }

  draw(run: Run | null): void {
    this.box.hidden = !run;
    if (!run) return fill(this.body);
    this.box.dataset.run = run.run_id;
    const { tone, head, detail } = runHead(run);
    const rows = runRows(run);
    const words = differences(run);
    fill(
      this.body,
      h("div", { class: `lp-verdict${tone === "bad" ? " lp-bad" : ""}`,
        role: tone === "bad" ? "alert" : null }, head),
      run.status === "failed" ? engine("div.lp-dim", detail) :
        h("div.lp-dim", {}, detail || sizeText(run.request)),
      rows.length ? drawRows(rows) : null,
      rows.length ? drawLegend(rows, true) : null,
      words.length ? h("ul", {}, ...words.map((line) => h("li", {}, line))) : null,
      ...run.notices.slice(-5).map((text) => engine("p.lp-notice", text)),
      loras(run.report.lora),
      kernels(run.report.kernels),
      this.copy(run),
    );
  }

  private copy(run: Run): HTMLElement {
    const said = h("span.lp-dim", { role: "status" });
    const press = async () => {
      said.textContent = (await toClipboard(shareable(run))) ? t("copy.done") : t("copy.refused");
    };
    return h("div.lp-actions", {},
      h("button", { type: "button", "data-key": "copy", onclick: () => void press() },
        t("copy.button")),
      h("span.lp-dim", {}, t("copy.what")), said);
  }
}

/** True if it is there. Plain http has no clipboard object, so a selection stands in. */
async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { style: "position:fixed;opacity:0" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function loras(list: unknown): HTMLElement | null {
  if (!Array.isArray(list) || !list.length) return null;
  return h("div.lp-sec", {}, h("h4", {}, t("section.lora")), ...(list as Lora[]).flatMap((item) => {
    const left = (item.skipped ?? []).filter((one) => one.matters !== false && one.tensors?.length);
    const bad = item.complete === false ? ".lp-bad" : "";
    return [
      h(`div.lp-lora${bad}`, {}, t("lora.bound", { file: item.file ?? "LoRA",
        bound: item.bound_tensors ?? "?", all: item.tensors ?? "?" })),
      ...left.map((one) => h("div.lp-dim", {},
        t("lora.left", { count: one.tensors!.length, reason: one.reason ?? "?" }))),
    ];
  }));
}

function kernels(found: unknown): HTMLElement | null {
  if (!found || typeof found !== "object") return null;
  const lines = Object.entries(found as Record<string, unknown>).flatMap(([stage, value]) =>
    kernelLines(stage, typeof value === "string" ? { implementation: value } : (value as Kernel) ?? {}));
  if (!lines.length) return null;
  return h("details.lp-sec", {}, h("summary", {}, t("section.kernels")),
    h("ul.lp-kernels", {}, ...lines.map((line) => h("li", {}, line))));
}

function kernelLines(stage: string, kernel: Kernel): string[] {
  const line = (what: string, name: string, reason?: string) =>
    reason ? t("kernels.because", { stage: what, name, reason }) : t("kernels.used", { stage: what, name });
  const { chosen = {}, because = {}, against = {}, changes_arithmetic: changes = [] } = kernel;
  return [
    line(stage, kernel.implementation ?? "?", kernel.reason),
    ...Object.entries(chosen).map(([operation, name]) => line(operation, name, because[operation])),
    ...Object.entries(against).map(([name, reason]) => t("kernels.against", { name, reason })),
    ...(changes.length ? [t("kernels.changes", { names: commas(changes) })] : []),
  ];
}
