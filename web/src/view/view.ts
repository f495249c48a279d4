/** The open tab: sections in a fixed order, each filled anew when what it shows changed. */

import uplotStyle from "uplot/dist/uPlot.min.css?inline";
import type { Panel } from "../panel";
import type { PanelState } from "../state";
import ownStyle from "../style.css?inline";
import { currentLanguage, t } from "../texts";
import { machineText } from "../words";
import { before, blocks, why } from "./before";
import { After } from "./after";
import { During } from "./during";
import { engine, fill, h, section } from "./dom";
import { history } from "./history";
import { WhatIfView } from "./what_if";

type Part = { of: (state: PanelState) => unknown[]; draw: (state: PanelState) => void };

export class View {
  private readonly root = h("div.lowpeak", { role: "region", "aria-label": "Lowpeak",
    lang: currentLanguage() });
  private readonly during: During;
  private readonly parts: Part[];
  private readonly drawn = new Map<Part, unknown[]>();
  private readonly theme: MutationObserver;
  private readonly onChange = () => this.draw();

  constructor(place: HTMLElement, private readonly panel: Panel) {
    const machine = h("span.lp-dim");
    const notices = h("div");
    const [beforeBox, beforeBody] = plain("div.lp-before", { role: "status", "aria-live": "polite" });
    const canvasTitle = h("h3.lp-title", {}, t("section.canvas"));
    const [barsBox, barsBody] = section(t("section.bars"));
    const [blocksBox, blocksBody, blocksTitle] = section("");
    const [whyBox, whyBody] = section(t("section.why"), true);
    const whatIf = new WhatIfView(panel);
    this.during = new During();
    const after = new After();
    const [pastBox, pastBody] = section(t("section.past"), true);
    pastBox.classList.add("lp-past");
    this.parts = [
      { of: (s) => [s.machine], draw: (s) => fill(machine, machineText(s.machine)) },
      { of: (s) => [s.serverError, s.notices], draw: (s) => drawNotices(notices, s) },
      { of: (s) => [s.active], draw: (s) => this.during.draw(s.active) },
      {
        of: (s) => [s.plan, s.planBusy, s.planError, s.active != null],
        draw: (s) => {
          beforeBody.classList.toggle("lp-busy", s.planBusy);
          before(beforeBody, barsBody, s, panel);
          // While something runs its own bars and blocks stand above.
          barsBox.hidden = !barsBody.childElementCount || s.active != null;
          blocksBox.hidden = !blocks(blocksTitle, blocksBody, s) || s.active != null;
          canvasTitle.hidden = s.active == null;
          whyBox.hidden = !why(whyBody, s);
        },
      },
      { of: (s) => [s.whatIf, s.map, s.plan, s.machine], draw: (s) => whatIf.draw(s) },
      { of: (s) => [s.last], draw: (s) => after.draw(s.last) },
      { of: (s) => [s.runs], draw: (s) => (pastBox.hidden = !history(pastBody, s.runs)) },
    ];
    this.root.append(
      h("style", {}, uplotStyle + ownStyle),
      h("div.lp-head", {}, h("h2", {}, "Lowpeak"), machine),
      notices, this.during.box, canvasTitle, beforeBox, barsBox, blocksBox, whyBox, whatIf.box, after.box, pastBox,
    );
    place.replaceChildren(this.root);
    this.theme = new MutationObserver(() => this.followTheme());
    for (const watched of [document.documentElement, document.body])
      this.theme.observe(watched, { attributes: true, attributeFilter: ["class", "style"] });
    this.followTheme();
    this.draw();
    panel.open(this.onChange);
  }

  close(): void {
    this.panel.close(this.onChange);
    this.theme.disconnect();
    this.during.close();
    this.root.remove();
  }

  private draw(): void {
    const state = this.panel.state;
    for (const part of this.parts) {
      const now = part.of(state);
      const then = this.drawn.get(part);
      if (then && then.every((value, at) => value === now[at])) continue;
      this.drawn.set(part, now);
      part.draw(state);
    }
  }

  /** Light or dark by the background that the theme really gives. */
  private followTheme(): void {
    const parts = getComputedStyle(this.root).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [];
    const [red = 0, green = 0, blue = 0] = parts;
    const light = 0.3 * red + 0.6 * green + 0.1 * blue > 128;
    this.root.dataset.theme = light ? "light" : "dark";
    this.during.redraw();
  }
}

function plain(tag: "div" | `div.${string}`, attributes: Record<string, string>): [HTMLElement, HTMLElement] {
  const body = h(tag, attributes);
  return [body, body];
}

function drawNotices(place: HTMLElement, state: PanelState): void {
  fill(
    place,
    state.serverError && h("p.lp-bad", { role: "alert" }, state.serverError),
    ...state.notices.map((text) => engine("p.lp-notice", text)),
  );
}
