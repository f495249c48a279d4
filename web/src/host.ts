/** ComfyUI as the panel sees it. Everything that touches `app`, `api` or the graph is here. */

import type { Setting } from "./graph";
import { t } from "./texts";
import type { Cell, PlanDocument, Prompt, Run, RunRow, ServerState } from "./types";

export interface ComfyApi extends EventTarget {
  fetchApi(route: string, options?: RequestInit): Promise<Response>;
}

interface Widget {
  name: string;
  value: unknown;
  callback?: (value: unknown) => void;
}

interface GraphNode {
  id: number | string;
  type?: string;
  mode?: number;
  widgets?: Widget[];
  inputs?: { link?: unknown }[];
  subgraph?: Graph;
}

interface Graph {
  nodes?: GraphNode[];
  _nodes?: GraphNode[];
  getNodeById(id: number | string): GraphNode | null | undefined;
  setDirtyCanvas?(foreground: boolean, background: boolean): void;
}

export interface SidebarTab {
  id: string;
  title: string;
  icon: string;
  tooltip: string;
  label: string;
  type: "custom";
  render(element: HTMLElement): void;
  destroy(): void;
}

export interface ComfyApp {
  graph?: Graph;
  rootGraph?: Graph;
  graphToPrompt(): Promise<{ output: Prompt }>;
  registerExtension(extension: Record<string, unknown>): void;
  extensionManager: {
    registerSidebarTab(tab: SidebarTab): void;
    setting?: { get(id: string): unknown };
    workflow?: { activeWorkflow?: { changeTracker?: { checkState?(): void } } };
  };
}

export class AnswerError extends Error {}

export interface Capacities {
  vram_gib?: number;
  ram_gib?: number;
  card?: string;
}

export class Host {
  /** Server's clock less this one's, in seconds. Runs are timed by the server. */
  private skew = 0;

  constructor(
    readonly app: ComfyApp,
    readonly api: ComfyApi,
  ) {}

  unixSeconds(): number {
    return Date.now() / 1000 + this.skew;
  }

  state(): Promise<ServerState> {
    return this.ask("/lowpeak/state");
  }

  async runs(): Promise<RunRow[]> {
    return (await this.ask<{ runs: RunRow[] }>("/lowpeak/runs")).runs;
  }

  run(id: string): Promise<Run> {
    return this.ask(`/lowpeak/runs/${encodeURIComponent(id)}`);
  }

  forecast(prompt: Prompt, on: Capacities = {}): Promise<PlanDocument> {
    return this.ask("/lowpeak/forecast", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ prompt, ...on }),
    });
  }

  /** One line of the capacity map: a cell for each amount of VRAM. */
  async cells(prompt: Prompt, vramGib: number[], on: Capacities): Promise<Cell[]> {
    const body = JSON.stringify({ prompt, ...on, each_vram_gib: vramGib });
    const headers = { "Content-Type": "application/json" };
    const options = { method: "POST", headers, body };
    return (await this.ask<{ cells: Cell[] }>("/lowpeak/forecast", options)).cells;
  }

  /** ComfyUI's language. */
  locale(): unknown {
    return this.app.extensionManager.setting?.get("Comfy.Locale");
  }

  async prompt(): Promise<Prompt> {
    return (await this.app.graphToPrompt()).output;
  }

  /** Changes whenever a widget, a link or a node does that a forecast could depend on. */
  signature(): string {
    const parts: unknown[] = [];
    const visit = (graph: Graph | undefined): void => {
      for (const node of graph?.nodes ?? graph?._nodes ?? []) {
        if (node.subgraph) visit(node.subgraph);
        if (!/Lowpeak|MiniMaxH3|Primitive/.test(node.type ?? "")) continue;
        parts.push(node.id, node.type, node.mode);
        for (const widget of node.widgets ?? [])
          if (["number", "boolean"].includes(typeof widget.value) || isShort(widget.value))
            parts.push(widget.value);
        for (const input of node.inputs ?? []) parts.push(input.link ?? 0);
      }
    };
    visit(this.graph());
    return JSON.stringify(parts);
  }

  /** Set widgets; gives the settings whose widget was not found. */
  apply(settings: Setting[]): Setting[] {
    const missing: Setting[] = [];
    for (const setting of settings) {
      const widget = this.find(setting.node)?.widgets?.find((w) => w.name === setting.widget);
      if (!widget) {
        missing.push(setting);
        continue;
      }
      widget.value = setting.value;
      widget.callback?.(setting.value);
    }
    this.graph()?.setDirtyCanvas?.(true, true);
    this.app.extensionManager.workflow?.activeWorkflow?.changeTracker?.checkState?.();
    return missing;
  }

  private graph(): Graph | undefined {
    return this.app.rootGraph ?? this.app.graph;
  }

  /** Ids inside subgraphs read "12:5": node 5 of the subgraph that is node 12. */
  private find(id: string): GraphNode | undefined {
    let graph = this.graph();
    let node: GraphNode | null | undefined;
    for (const part of id.split(":")) {
      node = graph?.getNodeById(part) ?? graph?.getNodeById(Number(part));
      graph = node?.subgraph;
    }
    return node ?? undefined;
  }

  private async ask<T>(route: string, options?: RequestInit): Promise<T> {
    let response: Response;
    try {
      response = await this.api.fetchApi(route, options);
    } catch {
      throw new AnswerError(t("error.silent"));
    }
    const date = Date.parse(response.headers.get("Date") ?? "");
    const off = (date - Date.now()) / 1000;
    if (Math.abs(off) > 2) this.skew = off; // the header has whole seconds
    const body = (await response.json().catch(() => null)) as T & { message?: string };
    if (response.ok && body) return body;
    if (response.status === 404 && !body)
      throw new AnswerError(t("error.routes"));
    throw new AnswerError(body?.message || t("error.status", { status: response.status }));
  }
}

function isShort(value: unknown): boolean {
  return typeof value === "string" && value.length < 80;
}
