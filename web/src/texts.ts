/** The panel's own words: one table a language. What the engine says stays as it says it, in English. */

import en from "../../locales/en/panel.json";
import zh from "../../locales/zh/panel.json";

export type Key = keyof typeof en;
type Values = Record<string, string | number>;
export const TABLES: Record<string, Record<Key, string>> = { en, zh };

let language = "en";

/** The table for a locale of ComfyUI ("zh", "zh-TW", "pt-BR"); English where there is none. */
export function languageOf(locale: unknown): string {
  const wanted = String(locale ?? "").toLowerCase().split(/[-_]/)[0]!;
  return wanted in TABLES ? wanted : "en";
}

export function setLanguage(locale: unknown): void {
  language = languageOf(locale);
}

export function currentLanguage(): string {
  return language;
}

/** A text of the current language; {name} is replaced by values.name. */
export function t(key: Key, values: Values = {}): string {
  return TABLES[language]![key].replace(/\{(\w+)\}/g, (_, name: string) => String(values[name]));
}

/** "a, b" in the current language. */
export function commas(parts: string[]): string {
  return parts.join(t("list.comma"));
}
