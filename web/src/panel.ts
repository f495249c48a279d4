/** The panel's one living object: keeps state while the tab is closed, asks and listens. */

import { hasSampler, settingsFor, slim } from "./graph";
import type { Host } from "./host";
import { type Action, EMPTY, type PanelState, reduce } from "./state";
import type { RunEvent, Size } from "./types";

const DEBOUNCE_MS = 350;
const WATCH_MS = 700;
const ENDINGS = ["execution_success", "execution_error", "execution_interrupted", "executed"];

export class Panel {
  state: PanelState = EMPTY;
  private readonly listeners = new Set<() => void>();
  private readonly timers = new Map<string, ReturnType<typeof setTimeout>>();
  private watch: ReturnType<typeof setInterval> | undefined;
  private signature = "";
  private asked = 0;
  private askedWhatIf = 0;

  constructor(readonly host: Host) {
    host.api.addEventListener("lowpeak.run", (event) => {
      const detail = (event as CustomEvent<RunEvent>).detail;
      if (this.state.active?.run_id !== detail.run_id) this.later("state", () => this.refresh());
      this.dispatch({ type: "event", event: detail, unixSeconds: host.unixSeconds() });
    });
    for (const name of ENDINGS)
      host.api.addEventListener(name, () => {
        if (this.state.active) this.later("state", () => this.refresh());
      });
    host.api.addEventListener("reconnected", () => this.later("state", () => this.refresh()));
  }

  /** The tab is open: ask for everything and watch the graph until `close`. */
  open(onChange: () => void): void {
    this.listeners.add(onChange);
    this.signature = "";
    void this.refresh();
    this.look();
    this.watch ??= setInterval(() => this.look(), WATCH_MS);
  }

  close(onChange: () => void): void {
    this.listeners.delete(onChange);
    if (this.listeners.size) return;
    clearInterval(this.watch);
    this.watch = undefined;
  }

  dispatch(action: Action): void {
    this.state = reduce(this.state, action);
    for (const listener of this.listeners) listener();
  }

  async refresh(): Promise<void> {
    try {
      const [state, runs] = await Promise.all([this.host.state(), this.host.runs()]);
      this.dispatch({ type: "server", state });
      this.dispatch({ type: "runs", runs });
    } catch (problem) {
      this.dispatch({ type: "server-error", message: text(problem) });
    }
  }

  /** Forecast the graph on the canvas. The newest question wins. */
  async forecast(): Promise<void> {
    const number = ++this.asked;
    try {
      // A graph may change between the look and now; what is asked is what counts as seen.
      this.signature = this.host.signature();
      const prompt = await this.host.prompt();
      if (number !== this.asked) return;
      if (!hasSampler(prompt)) return this.dispatch({ type: "no-sampler" });
      this.dispatch({ type: "forecast-begins", prompt });
      const plan = await this.host.forecast(slim(prompt));
      if (number === this.asked) this.dispatch({ type: "forecast", plan });
    } catch (problem) {
      if (number === this.asked)
        this.dispatch({ type: "forecast-error", message: text(problem) });
    }
    if (this.state.whatIf.plan) void this.askWhatIf();
  }

  /** Take a size that fits into the graph. */
  use(size: Size): string {
    const { prompt, plan } = this.state;
    const settings = prompt ? settingsFor(prompt, plan?.asked?.node_id ?? null, size) : [];
    const missing = settings.length ? this.host.apply(settings) : [];
    this.look();
    if (!settings.length || missing.length)
      return "Some of the graph's sizes come from elsewhere; please set them there.";
    return "";
  }

  whatIf(change: { card?: string; vramGib?: number; ramGib?: number }): void {
    this.dispatch({ type: "what-if", change: { ...change, busy: true } });
    this.later("what-if", () => this.askWhatIf(), DEBOUNCE_MS / 2);
  }

  private async askWhatIf(): Promise<void> {
    const { prompt, whatIf } = this.state;
    if (!prompt) return this.dispatch({ type: "what-if", change: { busy: false } });
    const number = ++this.askedWhatIf;
    const on = { vram_gib: whatIf.vramGib, ram_gib: whatIf.ramGib, card: whatIf.card || undefined };
    const change = await this.host.forecast(slim(prompt), on).then(
      (plan) => ({ plan, error: "" }),
      (problem: unknown) => ({ plan: null, error: text(problem) }),
    );
    if (number === this.askedWhatIf)
      this.dispatch({ type: "what-if", change: { ...change, busy: false } });
  }

  private look(): void {
    if (document.hidden) return;
    const signature = this.host.signature();
    if (signature === this.signature) return;
    this.signature = signature;
    this.later("forecast", () => this.forecast());
  }

  private later(name: string, what: () => Promise<void>, wait_ms = DEBOUNCE_MS): void {
    clearTimeout(this.timers.get(name));
    this.timers.set(name, setTimeout(() => void what(), wait_ms));
  }
}

function text(problem: unknown): string {
  return problem instanceof Error ? problem.message : String(problem);
}
