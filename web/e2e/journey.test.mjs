import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { barriers, launch, picture, tab, until, visitor, watched } from "./browser.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

const FIXED = 'dollars = row["amount"] / (150 if row["currency"] == "JPY" else 1)';

const status = (page) => page.getByLabel("Execution").innerText();
const ended = (page) =>
  until(
    "the run",
    () => status(page),
    (text) => /^(Completed|Failed|Stopped)/.test(text),
    120,
  );
const counts = async (page, name) =>
  (await page.locator(`[data-operator="${name}"] .counts`).innerText()).replace(/\s+/g, " ");
const settled = (page) => page.locator('.moment[aria-busy="false"]').waitFor({ timeout: 60_000 });
const choose = async (page, name) => {
  await page.locator(`[data-operator="${name}"]`).click();
  await page.getByRole("table", { name: `State of ${name}` }).waitFor();
  await settled(page);
};

test("why Bob's payments are refused is found, shown to others, mended in a fork, and compared", () =>
  watched(browser, "journey", async () => {
    const ana = await visitor(browser, "Ana");
    const id = await ana.evaluate(
      async () => (await (await fetch("/api/examples/fraud", { method: "POST" })).json()).workflow,
    );
    await ana.goto(new URL(`#/w/${id}`, ana.url()).href);
    await ana.locator('[data-operator="FD"]').waitFor();
    await ana.getByRole("button", { name: "▶ Run" }).click();
    assert.match(await ended(ana), /^Completed/);

    // when did Bob come onto the blacklist, by which tuple, by which lines
    await tab(ana, "Time");
    await ana.getByRole("combobox", { name: "operator" }).click();
    await ana.getByRole("option", { name: "FD", exact: true }).click();
    await ana.getByLabel("when", { exact: true }).fill("'Bob' in blacklist");
    await ana.getByLabel("when", { exact: true }).press("Enter");
    const changes = ana.getByRole("table", { name: "Changes" });
    await until(
      "what changed",
      async () => ((await changes.count()) ? changes.innerText() : ""),
      (text) => text.includes("FD.blacklist[Bob]"),
      90,
    );
    await settled(ana);
    assert.match(await ana.getByLabel("Moment").innerText(), /currency\s+JPY/);
    assert.match(await ana.locator('[data-operator="FD"] .changes').innerText(), /blacklist\[Bob\]: – → \d+/);
    const refused = await counts(ana, "FD");
    await ana.getByRole("button", { name: "Lines" }).click();
    await ana.getByRole("list", { name: "Lines of FD" }).getByText("self.blacklist[row").waitFor();
    await ana.getByTitle("Show where this tuple went").first().click();
    await until(
      "the scope",
      () =>
        ana.locator(".operator.lit").evaluateAll((all) =>
          all
            .map((o) => o.dataset.operator)
            .sort()
            .join(),
        ),
      (lit) => lit === "FD,FE,FF",
    );
    await picture(ana, "journey");
    assert.deepEqual(await barriers(ana), []);

    // a link and a note lead somebody else there, who then follows
    await ana.getByLabel("Note", { exact: true }).fill("yen taken for dollars?");
    await ana.getByRole("button", { name: "Pin" }).click();
    await ana.getByRole("button", { name: "yen taken for dollars?", exact: true }).waitFor();
    const bob = await visitor(browser, "Bob");
    await bob.goto(ana.url());
    await bob.reload();
    await until(
      "the same moment",
      () => counts(bob, "FD").catch(() => ""),
      (text) => text === refused,
      60,
    );
    await bob.getByRole("button", { name: "yen taken for dollars?", exact: true }).waitFor();
    await bob.getByRole("button", { name: "Ana", exact: true }).click();
    await choose(ana, "FE");
    await ana
      .getByRole("table", { name: "State of FE" })
      .getByTitle("Go to what changed this last")
      .first()
      .click();
    await until(
      "what set somebody's highest payment",
      () => changes.innerText(),
      (text) => text.includes("FE.highest["),
      60,
    );
    const earlier = await counts(ana, "FE");
    await until(
      "Bob follows",
      () => counts(bob, "FE"),
      (text) => text === earlier,
      30,
    );

    // the timeline by keys and by dragging
    const line = ana.getByRole("slider", { name: "Timeline" });
    await line.focus();
    await ana.keyboard.press("Home");
    await until(
      "the beginning",
      () => counts(ana, "FE"),
      (text) => text === "in 0 out 0",
    );
    const box = await line.boundingBox();
    await ana.mouse.move(box.x + box.width * 0.1, box.y + 17);
    await ana.mouse.down();
    await ana.mouse.move(box.x + box.width * 0.4, box.y + 17, { steps: 5 });
    await ana.mouse.up();
    await until(
      "somewhere in the middle",
      () => counts(ana, "FE"),
      (text) => /^in [1-9]/.test(text),
      60,
    );

    // a fork from there with the mended code, compared with the run it comes from
    const code = ana.locator(".cm-content");
    const text = await code.innerText();
    assert.ok(text.includes('dollars = row["amount"]'));
    await code.getByText('dollars = row["amount"]').click();
    await ana.keyboard.press("End");
    await ana.keyboard.press("Shift+Home");
    await ana.keyboard.insertText(FIXED);
    await ana.keyboard.press("Home");
    await ana.getByRole("button", { name: "Fork here" }).click();
    await until(
      "the fork",
      () =>
        ana
          .getByRole("combobox", { name: "Shown run" })
          .inputValue()
          .catch(() => ""),
      (name) => name.includes("fork"),
      60,
    );
    assert.match(await ended(ana), /^Completed/);
    await tab(ana, "Compare");
    await ana.getByRole("button", { name: "Compare", exact: true }).click();
    const verdict = await until(
      "the verdict",
      () =>
        ana
          .getByLabel("Verdict")
          .innerText()
          .catch(() => ""),
      (words) => words !== "",
      90,
    );
    assert.match(verdict, /^≠ Different/);
    assert.ok((await ana.getByRole("table", { name: "Rows that differ" }).getByRole("row").count()) > 1);
    await picture(ana, "compare");
    assert.deepEqual(await barriers(ana), []);
    await ana.getByRole("button", { name: "Go to the cause" }).click();
    await ana.getByLabel("Moment").waitFor({ timeout: 90_000 });
    assert.match(ana.url(), /run=.*&at=/);
    assert.deepEqual([...ana.problems, ...bob.problems], []);
  }));
