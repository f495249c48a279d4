/** What the LoRAs of the graph add, in a sentence before the run. Pure. */

import { t } from "./texts";
import type { PlanDocument } from "./types";
import { duration, gib } from "./words";

/** null without LoRAs, or where the plan says nothing of them. */
export function loraText(plan: PlanDocument): string | null {
  const { lora, asked } = plan;
  if (!lora || !asked?.loras) return null;
  const online = lora.mode === "online";
  const seconds = online ? lora.online_seconds : lora.merge_seconds;
  const values = { count: asked.loras, ram: gib(lora.host_bytes), time: duration(seconds) };
  if (plan.total_seconds == null) return t("lora.planned", values); // no time is known here
  return online ? t("lora.planned_online", values) : t("lora.planned_merged", values);
}
