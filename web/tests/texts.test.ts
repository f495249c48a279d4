import { afterEach, expect, test } from "vitest";
import { verdict } from "../src/words";
import { type Key, languageOf, setLanguage, t, TABLES, translated } from "../src/texts";
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

test("sentences of the engine are known in Chinese, others stay as they are", () => {
  expect(translated("VRAM: 8.00 GiB free, 0.50 GiB margin kept")).toBeNull();
  setLanguage("zh");
  const said = {
    "VRAM: 8.00 GiB free, 0.50 GiB margin kept": "显存空闲 8.00 GiB，预留 0.50 GiB",
    "2 of 50 blocks resident, 21 in pinned memory, 27 read from disk at every step":
      "50 个块：2 个常驻显卡，21 个在锁页内存，27 个每步从磁盘读取",
    "2 GiB more VRAM: 14 s faster (store, 3 resident)": "显存多 2 GiB：快 14 s（store, 3 resident）",
    "width 1000 px is not a multiple of 32: using 992 px": "width 1000 像素不是 32 的倍数：改用 992 像素",
    "Keys and values wait in host memory": "键和值放在内存里",
    "2 transfer slot(s) of half a block": "2 个传输槽，每个放半个块",
  };
  for (const [sentence, chinese] of Object.entries(said)) expect(translated(sentence)).toBe(chinese);
  expect(translated("Something new.")).toBeNull();
});
