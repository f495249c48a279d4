/** Elements without a framework. Text is always set as text, never parsed as HTML. */

import { currentLanguage, translated } from "../texts";

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | EventListener | null | undefined>;

/** h("button.quiet", { onclick }, "Use"): an element with classes, attributes and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  selector: K | `${K}.${string}`,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag!) as HTMLElementTagNameMap[K];
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child): child is Node | string => !!child));
  return element;
}

/** Something the engine said. What has no translation is marked as English, to be read out as such. */
export function engine<K extends keyof HTMLElementTagNameMap>(
  selector: K | `${K}.${string}`, text: string,
): HTMLElementTagNameMap[K] {
  const own = currentLanguage() === "en" ? text : translated(text);
  return h(selector, { lang: own == null ? "en" : null }, own ?? text);
}

/** Replace what `parent` holds; the focused element stays focused if one with its data-key comes. */
export function fill(parent: HTMLElement, ...children: Child[]): void {
  const focused = parent.contains(document.activeElement)
    ? (document.activeElement as HTMLElement).dataset.key
    : undefined;
  parent.replaceChildren(...children.filter((child): child is Node | string => !!child));
  if (focused) parent.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

let sections = 0;

/** A titled section; with `folded` one that opens on demand. Gives the element and its body. */
export function section(title: string, folded = false): [HTMLElement, HTMLElement, HTMLElement] {
  const body = h("div.lp-body");
  if (folded) {
    const head = h("summary", {}, title);
    return [h("details.lp-sec", {}, head, body), body, head];
  }
  const head = h("h3", { id: `lowpeak-section-${++sections}` }, title);
  return [h("section.lp-sec", { "aria-labelledby": head.id }, head, body), body, head];
}
