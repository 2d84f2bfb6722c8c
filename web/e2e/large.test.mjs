import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, made, until, visitor, watched } from "./browser.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

test("a result of a million rows scrolls to its end, sorted by Spark, and only what is seen is loaded", (t) =>
  watched(browser, "million", async () => {
    const page = await visitor(browser, "Ana");
    const asked = [];
    page.on("request", (request) => request.url().includes("/results/") && asked.push(request.url()));
    await made(page, {
      samovar: 1,
      name: "million",
      operators: [
        { name: "one", op: "values", schema: "a int", rows: [[1]] },
        { name: "many", op: "select", inputs: ["one"], columns: ["explode(sequence(1, 1000000)) AS n"] },
        { name: "more", op: "select", inputs: ["many"], columns: ["n", "n % 7 AS week"] },
        { name: "S", op: "sink", inputs: ["more"] },
      ],
    });
    await page.getByRole("button", { name: "▶ Run" }).click();
    await until(
      "the rows",
      () =>
        page
          .getByLabel("Row count")
          .innerText()
          .catch(() => ""),
      (text) => text.replace(/\D/g, "") === "1000000",
      120,
    );
    const grid = page.getByRole("table", { name: "Result S" });
    const began = Date.now();
    await grid.evaluate((box) => (box.scrollTop = box.scrollHeight));
    const last = grid.getByRole("rowheader", { name: "1000000" });
    await last.waitFor();
    await until(
      "its last row",
      () => grid.getByRole("cell").last().innerText(),
      (text) => text !== "…",
    );
    t.diagnostic(`from the first row to the last: ${Date.now() - began} ms, ${asked.length} pages loaded`);
    assert.ok(asked.length < 20, `${asked.length} pages`);
    await grid.evaluate((box) => (box.scrollTop = 0));
    await grid.getByRole("button", { name: "n", exact: true }).click();
    await grid.getByRole("button", { name: "n ▲" }).click();
    await until(
      "the greatest first",
      () => grid.getByRole("cell").first().innerText(),
      (text) => text === "1000000",
      60,
    );
    await page.getByRole("button", { name: "Columns in figures" }).click();
    const figures = page.getByRole("table", { name: "Columns of S" });
    assert.match(await figures.getByRole("row", { name: /^week/ }).innerText(), /0\s+about 7\s+0\s+6\s+/);
  }));

test("a canvas of two hundred operators keeps its frame rate while one is dragged", (t) =>
  watched(browser, "frames", async () => {
    const page = await visitor(browser, "Ana");
    const operators = [{ name: "s", op: "values", schema: "n int", rows: [[1]] }];
    for (let i = 1; i < 200; i++)
      operators.push({
        name: `f${i}`,
        op: "filter",
        inputs: [i === 1 ? "s" : `f${i - 1}`],
        condition: `n > ${-i}`,
      });
    await made(page, { samovar: 1, name: "wide", operators });
    await page.getByRole("button", { name: "Arrange" }).click();
    await page.getByRole("button", { name: /fit view/i }).click();
    const node = page.locator(".react-flow__node").first();
    await node.waitFor();
    const box = await node.boundingBox();
    await page.evaluate(() => {
      window.frames_ = [];
      const tick = (now) => {
        window.frames_.push(now);
        requestAnimationFrame(tick);
      };
      requestAnimationFrame(tick);
    });
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
    const start = await page.evaluate(() => performance.now());
    for (let i = 0; i < 150; i++)
      await page.mouse.move(box.x + 20 + 2 * i, box.y + 20 + 60 * Math.sin(i / 10));
    const end = await page.evaluate(() => performance.now());
    await page.mouse.up();
    const frames = (await page.evaluate(() => window.frames_)).filter((at) => at >= start && at <= end);
    const gaps = frames
      .slice(1)
      .map((at, i) => at - frames[i])
      .sort((a, b) => a - b);
    const rate = (1000 * (frames.length - 1)) / (frames.at(-1) - frames[0]);
    t.diagnostic(
      `${rate.toFixed(0)} frames a second over ${frames.length} frames; 95 % of gaps within ${gaps[Math.floor(gaps.length * 0.95)].toFixed(0)} ms`,
    );
    assert.ok(rate > 30, `${rate.toFixed(1)} frames a second`);
  }));

test("the first pages load less than 400 kB of script", (t) =>
  watched(browser, "size", async () => {
    const page = await visitor(browser, "Ana");
    await made(page, {
      samovar: 1,
      name: "size",
      operators: [{ name: "s", op: "values", schema: "n int", rows: [[1]] }],
    });
    await page.getByLabel("Search operators").waitFor();
    const scripts = await page.evaluate(() =>
      performance
        .getEntriesByType("resource")
        .filter((r) => r.name.endsWith(".js"))
        .map((r) => [r.name.split("/").pop(), r.encodedBodySize]),
    );
    const whole = scripts.reduce((sum, [, bytes]) => sum + bytes, 0);
    t.diagnostic(`${scripts.length} scripts, ${(whole / 1000).toFixed(0)} kB compressed`);
    assert.ok(scripts.length >= 2);
    assert.ok(whole > 50_000 && whole < 400_000, JSON.stringify(scripts));
  }));
