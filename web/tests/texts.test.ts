import { afterEach, expect, test } from "vitest";
import { verdict } from "../src/words";
import { type Key, languageOf, setLanguage, t, TABLES } from "../src/texts";
import { PLAN, REFUSAL } from "./fixtures";

afterEach(() => setLanguage("en"));

const slots = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(String).sort();

test("every language has every text, with the same places to fill", () => {
  for (const [language, table] of Object.entries(TABLES)) {
    expect(Object.keys(table), language).toEqual(Object.keys(TABLES.en!));
    for (const [key, text] of Object.entries(table)) {
      expect(text, `${language} ${key}`).not.toBe("");
      expect(slots(text), `${language} ${key}`).toEqual(slots(TABLES.en![key as Key]));
    }
  }
});

test("Chinese is Chinese but for names and signs", () => {
  const same = ["size", "section.lora", "now.ours", "past.other_day"];
  for (const [key, text] of Object.entries(TABLES.zh!))
    expect(/[\u4e00-\u9fff]/.test(text) || !/[a-z]{3}/i.test(text.replace(/\{\w+\}/g, "")) ||
      same.includes(key), key).toBe(true);
});

test("a locale finds its language, and English stands in", () => {
  expect(["zh", "zh-TW", "en", "pt-BR", undefined].map(languageOf)).toEqual(
    ["zh", "zh", "en", "en", "en"]);
});

test("a verdict reads in Chinese", () => {
  setLanguage("zh");
  expect(verdict(PLAN).head).toBe("放得下，约 11 分 00 秒");
  expect(verdict(PLAN).detail).toContain("显存 6.0 / 7.4 GiB");
  expect(verdict(REFUSAL).head).toBe("放不下：内存差 2.5 GiB");
  expect(t("lora.left", { count: 3, reason: "no" })).toBe("未用 3 个：no");
});
