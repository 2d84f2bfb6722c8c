import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { barriers, launch, make, picture, tab, until, visitor, watched } from "./browser.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

const D1 = 'id,note,n\n1,"say ""hi"", ok",10\n2,"plain, comma",20\n3,"multi\nline",30\n4,"x",40\n';
const BAD = 'id,note,n\n1,fine,10\n2,too,20,many\n3,"also\ntoo",30,many\n4,fine,40\n';

async function run(page) {
  await page.getByRole("button", { name: "▶ Run" }).click();
  const status = page.getByLabel("Execution");
  await until(
    "the run",
    () => status.innerText(),
    (text) => /^(Completed|Failed|Stopped)/.test(text),
    120,
  );
  assert.match(await status.innerText(), /^Completed/);
}

async function read(page, name, body) {
  await tab(page, "Files");
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Upload" }).click();
  await (await choosing).setFiles({ name, mimeType: "text/csv", buffer: Buffer.from(body) });
  await page.getByRole("cell", { name }).waitFor();
  await page.getByLabel("Search operators").fill("csv files");
  await page.getByLabel("Search operators").press("Enter");
  await page.getByLabel("Properties").getByRole("button", { name, exact: true }).click();
  await page.locator('[data-kind="sink"]').click();
}

test("a file of a spreadsheet is read as it was written", () =>
  watched(browser, "csv", async () => {
    const page = await visitor(browser, "Ana");
    await make(page, "sheet");
    await read(page, "d1.csv", D1);
    await run(page);
    await tab(page, "Result");
    await until(
      "the rows",
      () => page.getByLabel("Row count").innerText(),
      (text) => text === "4 rows",
    );
    const cells = await page.getByRole("table", { name: "Result S" }).getByRole("cell").allInnerTexts();
    assert.ok(cells.includes('say "hi", ok'), String(cells));
    assert.equal(await page.locator(".operator .loss").count(), 0);
    await tab(page, "Problems");
    assert.match(await page.getByRole("tabpanel").innerText(), /Nothing is wrong/);
  }));

test("rows that do not parse are shown on the operator and listed with file and line", () =>
  watched(browser, "rejected", async () => {
    const page = await visitor(browser, "Ana");
    await make(page, "damaged");
    await read(page, "bad.csv", BAD);
    await run(page);
    const badge = page.locator('[data-operator="csv_files"] .loss');
    await until(
      "the badge",
      () => badge.innerText(),
      (text) => /2 rows rejected/.test(text),
    );
    await page.getByRole("tab", { name: "Problems (1)" }).click();
    const listed = page.getByLabel("Rejected rows of csv_files").getByRole("row");
    await until(
      "the rows",
      () => listed.allInnerTexts(),
      (rows) => rows.length === 3,
    );
    const rows = await listed.allInnerTexts();
    assert.match(rows[1], /bad\.csv\s+3\s+2,too,20,many/);
    assert.match(rows[2], /bad\.csv\s+4\s+3,"also\s+too",30,many/);
    await picture(page, "rejected");
    assert.deepEqual(await barriers(page), []);
    assert.deepEqual(page.problems, []);
  }));
