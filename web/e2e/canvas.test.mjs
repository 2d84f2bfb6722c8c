import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { barriers, command, launch, make, picture, until, visitor, watched } from "./browser.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

const names = async (page) =>
  (await page.locator("[data-operator]").evaluateAll((all) => all.map((o) => o.dataset.operator))).sort();
const field = (page, name) => page.getByLabel("Properties").getByLabel(name, { exact: true });
const edges = (page) => page.locator(".react-flow__edge").count();

async function finished(page) {
  const status = page.getByLabel("Execution");
  const text = await until(
    "the run",
    () => status.innerText(),
    (t) => /^(Completed|Failed|Stopped)/.test(t),
    120,
  );
  assert.match(text, /^Completed/);
}

test("a workflow with a chart is built from the keyboard alone, run, and drawn", () =>
  watched(browser, "keyboard", async () => {
    const page = await visitor(browser, "Ana");
    await make(page, "keyboard");
    await page.getByText("Nothing here yet").waitFor();
    await command(page, "add generate");
    await command(page, "add filter");
    await until(
      "an edge",
      () => edges(page),
      (n) => n === 1,
    );
    await command(page, "edit filter");
    await until(
      "the cursor in the condition",
      () => page.evaluate(() => document.activeElement?.getAttribute("aria-label")),
      (l) => l === "condition",
    );
    await page.keyboard.press("Control+a");
    await page.keyboard.type("amount > 50", { delay: 10 });
    await page.keyboard.press("Escape");
    await command(page, "add bar chart");
    await command(page, "go to generate");
    await command(page, "add sink");
    assert.deepEqual(await names(page), ["S", "bar_chart", "filter", "generate"]);
    await command(page, "go to bar_chart");
    await field(page, "x").fill("customer");
    await field(page, "y").fill("amount");
    await page
      .locator(".react-flow__pane")
      .focus()
      .catch(() => undefined);
    await page.keyboard.press("Control+Enter");
    await finished(page);
    await page.getByRole("tab", { name: "Charts" }).click();
    await until(
      "four bars",
      () => page.locator('[data-chart="bar_chart"] rect').count(),
      (n) => n === 4,
    );
    assert.match(
      await page.getByRole("img", { name: /bar chart/ }).getAttribute("aria-label"),
      /sum of amount over customer/,
    );
    await picture(page, "charts");
    assert.deepEqual(await barriers(page), []);
    assert.deepEqual(page.problems, []);
  }));

test("operators are disabled, run up to, connected and copied from the keyboard; undo takes it back", () =>
  watched(browser, "parts", async () => {
    const page = await visitor(browser, "Ana");
    await make(page, "parts");
    await command(page, "add generate");
    await command(page, "add filter");
    await command(page, "add limit");
    await command(page, "add sink");
    await command(page, "disable limit").catch(() => undefined); // not selected: no such command, Enter does nothing
    await page.keyboard.press("Escape");
    await command(page, "go to limit");
    await page.keyboard.press("e");
    await until(
      "limit is off",
      () => page.locator('[data-operator="limit"]').innerText(),
      (t) => t.includes("disabled"),
    );
    await page.keyboard.press("Shift+Enter");
    await finished(page);
    assert.match(await page.getByLabel("Execution").innerText(), /^Completed/);
    await page.getByRole("tab", { name: "Result" }).click();
    await until(
      "rows",
      () => page.getByLabel("Row count").innerText(),
      (t) => /1.?000 rows/.test(t),
    );
    await page.keyboard.press("Control+d");
    await until(
      "a copy",
      () => names(page),
      (all) => all.includes("limit_2"),
    );
    await command(page, "go to filter");
    await command(page, "connect filter to limit_2");
    await until(
      "the edge",
      () => edges(page),
      (n) => n === 4,
    );
    await command(page, "disconnect filter from limit_2");
    await until(
      "no edge",
      () => edges(page),
      (n) => n === 3,
    );
    await command(page, "undo");
    await until(
      "the edge again",
      () => edges(page),
      (n) => n === 4,
    );
    assert.deepEqual(page.problems, []);
  }));

test("SQL is completed and checked as it is typed, and a wrong column marks the edge", () =>
  watched(browser, "sql", async () => {
    const page = await visitor(browser, "Ana");
    await make(page, "sql");
    await page.locator('[data-kind="generate"]').click();
    await page.locator('[data-kind="filter"]').click();
    await page.locator('[data-kind="sink"]').click();
    await page.locator('[data-operator="filter"]').click();
    await until(
      "Spark is up",
      () => page.getByLabel("Properties").innerText(),
      (t) => t.includes("customer string"),
      90,
    );
    const condition = page.getByLabel("condition", { exact: true });
    await condition.click();
    await page.keyboard.press("Control+a");
    await page.keyboard.type("cus", { delay: 30 });
    await page.locator(".cm-tooltip-autocomplete li", { hasText: "customer" }).first().waitFor();
    await page.waitForTimeout(100); // CodeMirror takes Enter for the offer only after a moment
    await page.keyboard.press("Enter");
    assert.equal((await condition.innerText()).trim(), "customer");
    await page.keyboard.type(" = 'Bob' AND amout > 5", { delay: 5 });
    await page.keyboard.press("Escape");
    await until(
      "what Spark says",
      () => page.locator(".sql").innerText(),
      (t) => t.includes("Did you mean 'amount'?"),
      30,
    );
    await until(
      "the edge is marked",
      () => page.locator(".react-flow__edge.wrong").count(),
      (n) => n === 1,
      30,
    );
    await picture(page, "sql");
    assert.deepEqual(page.problems, []);
  }));

test("code is remarked on and tried on ten rows", () =>
  watched(browser, "trial", async () => {
    const page = await visitor(browser, "Ana");
    await make(page, "trial");
    await page.locator('[data-kind="values"]').click();
    await page.locator('[data-kind="python"]').click();
    await page.locator(".cm-content").first().click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("\nx = undefined_name", { delay: 2 });
    await until(
      "a remark",
      () => page.getByLabel("Properties").innerText(),
      (t) => t.includes("'undefined_name'"),
    );
    for (let i = 0; i < 19; i++) await page.keyboard.press("Backspace");
    await page.getByRole("button", { name: "Try on 10 rows" }).click();
    const table = page.getByRole("table", { name: "Trial of python" });
    await table.waitFor({ timeout: 90_000 });
    assert.match(await table.innerText(), /seen[\s\S]*250\.0[\s\S]*2/);
    await picture(page, "trial");
  }));

test("comments are typed by two people, and an example opens with its story", () =>
  watched(browser, "comments", async () => {
    const ana = await visitor(browser, "Ana");
    const bob = await visitor(browser, "Bob");
    await ana.getByRole("button", { name: "Open the example “taxi”" }).click();
    await ana.locator('[data-operator="odometer"]').waitFor();
    assert.match(await ana.getByLabel("Comment", { exact: true }).inputValue(), /kilometres/);
    await bob.goto(ana.url());
    await bob.getByLabel("Comment", { exact: true }).waitFor();
    await ana.locator(".react-flow__pane").click({ position: { x: 5, y: 5 } });
    await ana.keyboard.press("c");
    await until(
      "two comments",
      () => bob.getByLabel("Comment", { exact: true }).count(),
      (n) => n === 2,
    );
    await bob.getByLabel("Comment", { exact: true }).nth(1).fill("look here");
    await until(
      "Ana reads it",
      () => ana.getByLabel("Comment", { exact: true }).nth(1).inputValue(),
      (t) => t === "look here",
    );
    await picture(ana, "comments");
    assert.deepEqual(await barriers(ana), []);
    assert.deepEqual([...ana.problems, ...bob.problems], []);
  }));

test("newcomers are shown around in three steps", () =>
  watched(browser, "tour", async () => {
    const page = await visitor(browser, "Ana");
    await make(page, "tour");
    await command(page, "show the tour");
    const tour = page.getByRole("dialog", { name: "Tour" });
    await tour.getByText("1 of 3: Build").waitFor();
    await tour.getByRole("button", { name: "Next" }).click();
    await tour.getByRole("button", { name: "Next" }).click();
    await tour.getByText("3 of 3: Travel").waitFor();
    await tour.getByRole("button", { name: "Done" }).click();
    await tour.waitFor({ state: "hidden" });
  }));
