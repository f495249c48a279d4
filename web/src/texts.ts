/** The panel's words: one table a language, and the engine's sentences as far as they are known. */

import en from "../../locales/en/panel.json";
import engineZh from "../../locales/zh/engine.json";
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

const SENTENCES: Record<string, [RegExp, string][]> = {
  zh: Object.entries(engineZh).map(([pattern, text]) => [matcher(pattern), text]),
};

/** "a {n} b" as an expression that finds n. */
function matcher(pattern: string): RegExp {
  const escaped = pattern.replace(/[.*+?^$()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replace(/\{(\w+)\}/g, "(?<$1>.+?)")}$`, "i");
}

/** A sentence of the engine in the current language; null where nobody translated it. */
export function translated(sentence: string): string | null {
  for (const [pattern, text] of SENTENCES[language] ?? []) {
    const found = pattern.exec(sentence);
    if (found) return text.replace(/\{(\w+)\}/g, (_, name: string) => found.groups?.[name] ?? "");
  }
  return null;
}
