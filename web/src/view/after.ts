/** The last run: measured beside forecast, differences in words, kernels, LoRAs, the report. */

import { runRows } from "../bars";
import { shareable } from "../state";
import type { Run } from "../types";
import { differences, runHead, sizeText } from "../words";
import { drawLegend, drawRows } from "./bars";
import { fill, h, section } from "./dom";

interface Lora { file?: string; tensors?: number; bound_tensors?: number; complete?: boolean }

export class After {
  readonly box: HTMLElement;
  private readonly body: HTMLElement;

  constructor() {
    [this.box, this.body] = section("Last run");
    this.box.hidden = true;
  }

  draw(run: Run | null): void {
    this.box.hidden = !run;
    if (!run) return fill(this.body);
    const { tone, head, detail } = runHead(run);
    const rows = runRows(run);
    const words = differences(run);
    fill(
      this.body,
      h("div", { class: `lp-verdict${tone === "bad" ? " lp-bad" : ""}`,
        role: tone === "bad" ? "alert" : null }, head),
      h("div.lp-dim", {}, detail || sizeText(run.request)),
      rows.length ? drawRows(rows) : null,
      rows.length ? drawLegend(true) : null,
      words.length ? h("ul", {}, ...words.map((line) => h("li", {}, line))) : null,
      ...run.notices.slice(-5).map((text) => h("p.lp-notice", {}, text)),
      loras(run.report.lora),
      kernels(run.report.kernels),
      this.copy(run),
    );
  }

  private copy(run: Run): HTMLElement {
    const said = h("span.lp-dim", { role: "status" });
    const press = async () => {
      said.textContent = (await toClipboard(shareable(run))) ? "Copied." : "The browser refused.";
    };
    return h("div.lp-actions", {},
      h("button", { type: "button", "data-key": "copy", onclick: () => void press() },
        "Copy report"),
      h("span.lp-dim", {}, "JSON; no prompt, no paths"), said);
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
  return h("div", {}, ...(list as Lora[]).map((item) =>
    h("div", { class: item.complete === false ? "lp-bad" : "" },
      `${item.file ?? "LoRA"}: ${item.bound_tensors ?? "?"} of ${item.tensors ?? "?"} tensors bound`)));
}

function kernels(found: unknown): HTMLElement | null {
  if (!found || typeof found !== "object") return null;
  const lines = Object.entries(found as Record<string, unknown>).map(([stage, value]) => {
    const { implementation, reason } = (value ?? {}) as Record<string, unknown>;
    const name = typeof value === "string" ? value : String(implementation ?? JSON.stringify(value));
    return `${stage}: ${name}${reason ? ` (${reason})` : ""}`;
  });
  if (!lines.length) return null;
  return h("details.lp-sec", {}, h("summary", {}, "Kernels used"),
    h("ul", {}, ...lines.map((line) => h("li", {}, line))));
}
