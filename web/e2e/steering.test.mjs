import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { barriers, launch, made, picture, tab, until, visitor, watched } from "./browser.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

const SLOW = `
import time

class Slow(sv.Operator):
    output = "n int, part int"
    seen = sv.ValueState(0)

    def process(self, row, port=0):
        self.seen += 1
        if row["n"] == 0:
            print("off we go")
        time.sleep(0.02)
        yield
        yield {"n": row["n"], "part": 1000 // (row["n"] - 250)}
`;
const STEERED = {
  samovar: 1,
  name: "steered",
  operators: [
    { name: "numbers", op: "values", schema: "n int", rows: Array.from({ length: 300 }, (_, n) => [n]) },
    { name: "P", op: "python", inputs: ["numbers"], code: SLOW },
    { name: "S", op: "sink", inputs: ["P"] },
  ],
};

const status = (page) => page.getByLabel("Execution").innerText();
const counted = async (page) => {
  const counts = page.locator('[data-operator="P"] .counts');
  return (await counts.count()) === 0 ? 0 : Number(/in (\d+)/.exec(await counts.innerText())?.[1] ?? 0);
};
const deeds = (page) =>
  page.getByRole("list", { name: "What happened" }).getByRole("listitem").allInnerTexts();

test("people watch a run, pause it, look inside, and help it over a tuple; who comes late sees it all", () =>
  watched(browser, "steering", async () => {
    const ana = await visitor(browser, "Ana");
    const bob = await visitor(browser, "Bob");
    const url = await made(ana, STEERED);
    await bob.goto(url);
    await until(
      "both are there",
      () => ana.getByLabel("People").innerText(),
      (text) => text.includes("Bob"),
    );
    await ana.getByRole("button", { name: "▶ Run" }).click();
    const early = await until(
      "counts on the other screen",
      () => counted(bob),
      (n) => n > 5,
      120,
    );
    await until(
      "counts that rise",
      () => counted(bob),
      (n) => n > early,
    );

    await ana.getByRole("button", { name: "Pause" }).click();
    await until(
      "who paused",
      () => status(bob),
      (text) => text === "Paused by Ana",
    );
    await bob.locator('[data-operator="P"]').click();
    await tab(bob, "Live");
    await bob.getByRole("button", { name: "Inspect" }).click();
    const state = bob.getByRole("table", { name: "State of P now" });
    const seen = Number(/seen\s+(\d+)/.exec(await state.innerText())[1]);
    assert.ok(seen > early, `${seen} tuples`);
    await picture(bob, "live");
    assert.deepEqual(await barriers(bob), []);

    const cem = await visitor(browser, "Cem"); // late
    await cem.goto(url);
    await until(
      "the pause",
      () => status(cem),
      (text) => text === "Paused by Ana",
    );
    await tab(cem, "Live");
    const lines = await until(
      "what happened",
      () => deeds(cem),
      (all) => all.length > 0,
    );
    const told = lines.map((line) => line.replace(/^\S+( [AP]M)? /, ""));
    assert.deepEqual(told, ["Bob looked into P", "Ana paused it", "Ana asked for the run"]);
    await cem.getByRole("button", { name: "Resume" }).click();

    await until(
      "the held tuple",
      () => status(ana),
      (text) => text.startsWith("P holds a tuple: ZeroDivisionError"),
      60,
    );
    await ana.getByRole("button", { name: "Held by P" }).click();
    const dialog = ana.getByRole("dialog");
    await dialog.getByText("integer division or modulo by zero").first().waitFor();
    assert.match(await dialog.innerText(), /1000 \/\/ \(row\["n"\] - 250\)/);
    assert.equal(await dialog.getByLabel("n", { exact: true }).inputValue(), "250");
    await picture(ana, "held");
    assert.deepEqual(await barriers(ana), []);
    await dialog.getByLabel("n", { exact: true }).fill("260");
    await dialog.getByRole("button", { name: "Retry with these values" }).click();
    await until(
      "the end",
      () => status(bob),
      (text) => text.startsWith("Completed"),
      60,
    );
    await bob.getByRole("tab", { name: "Console (1)" }).click();
    await until(
      "what it printed",
      () => bob.getByRole("list", { name: "Console" }).innerText(),
      (text) => /P off we go/.test(text),
    );
    await tab(bob, "Result");
    await until(
      "all rows",
      () => bob.getByLabel("Row count").innerText(),
      (text) => text === "300 rows",
    );
    assert.deepEqual([...ana.problems, ...bob.problems, ...cem.problems], []);
  }));
