/** The panel's one living object: keeps state while the tab is closed, asks and listens. */

import { CARDS, MAP_RAM_GIB, MAP_VRAM_GIB } from "./cards";
import { hasSampler, settingsFor, slim } from "./graph";
import type { Host } from "./host";
import { type Action, type CapacityMap, EMPTY, type PanelState, reduce } from "./state";
import { currentLanguage, languageOf, setLanguage, t } from "./texts";
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
  private refreshes = 0;
  private askedWhatIf = 0;
  private askedMap = 0;
  /** Called when ComfyUI's language changed: everything shown is to be drawn anew. */
  onLanguage = (): void => {};

  constructor(readonly host: Host) {
    this.followLanguage();
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

  followLanguage(): void {
    setLanguage(this.host.locale());
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

  /** Ask the server for everything but the forecast. The newest question wins. */
  async refresh(): Promise<void> {
    const number = ++this.refreshes;
    try {
      const [state, runs] = await Promise.all([this.host.state(), this.host.runs()]);
      if (number !== this.refreshes) return;
      this.dispatch({ type: "server", state });
      this.dispatch({ type: "runs", runs });
    } catch (problem) {
      if (number === this.refreshes)
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
    if (!this.state.whatIf.open) return;
    void this.askWhatIf();
    void this.drawMap();
  }

  /** Take a size that fits into the graph. */
  use(size: Size): string {
    const { prompt, plan } = this.state;
    const settings = prompt ? settingsFor(prompt, plan?.asked?.node_id ?? null, size) : [];
    const missing = settings.length ? this.host.apply(settings) : [];
    this.look();
    if (!settings.length || missing.length)
      return t("offers.elsewhere");
    return "";
  }

  openWhatIf(open: boolean): void {
    if (open === this.state.whatIf.open) return;
    this.dispatch({ type: "what-if", change: { open } });
    if (!open) {
      this.askedMap++; // what is still to come is not waited for
      return;
    }
    void this.askWhatIf();
    void this.drawMap();
  }

  whatIf(change: { card?: string; vramGib?: number; ramGib?: number }): void {
    this.dispatch({ type: "what-if", change: { ...change, busy: true } });
    this.later("what-if", () => this.askWhatIf(), DEBOUNCE_MS / 2);
    if (change.card !== undefined) this.later("map", () => this.drawMap());
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

  /** The capacity map of the graph, line by line; a newer map or a closed section ends an older. */
  private async drawMap(): Promise<void> {
    const { prompt, whatIf } = this.state;
    const number = ++this.askedMap;
    const most = CARDS.find(([key]) => key === whatIf.card)?.[2] ?? Infinity;
    const vramGib = MAP_VRAM_GIB.filter((gib) => gib <= most);
    const lines: CapacityMap["lines"] = {};
    this.dispatch({ type: "map", map: { vramGib, lines, error: "" } });
    if (!prompt) return;
    try {
      for (const ram_gib of MAP_RAM_GIB) {
        const on = { ram_gib, card: whatIf.card || undefined };
        const cells = await this.host.cells(slim(prompt), vramGib, on);
        if (number !== this.askedMap) return;
        lines[ram_gib] = cells;
        this.dispatch({ type: "map", map: { lines: { ...lines } } });
      }
    } catch (problem) {
      if (number === this.askedMap) this.dispatch({ type: "map", map: { error: text(problem) } });
    }
  }

  private look(): void {
    if (document.hidden) return;
    if (languageOf(this.host.locale()) !== currentLanguage()) this.onLanguage();
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
