/** The fraud workflow from nothing, once with the mouse and once with the keyboard alone, and the whole way with it. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { barriers, command, launch, make, picture, tab, until, visitor, watched } from "./browser.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

const ROWS = 500;
const BAD = 300; // a payment without an amount
const YEN = 420; // Bob's, in yen

/** Small payments of five people; Bob pays in yen once. */
function payments() {
  const lines = ["payment,customer,amount,currency"];
  for (let i = 1; i <= ROWS; i++) {
    const who = ["Ana", "Bob", "Chris", "Dana", "Emil"][i % 5];
    const amount = i === BAD ? "" : (3 + (i % 7)).toFixed(2);
    lines.push(i === YEN ? `${i},Bob,5000.00,JPY` : `${i},${who},${amount},USD`);
  }
  return Buffer.from(`${lines.join("\n")}\n`);
}

const FE = `import time

class FeatureEnrichment(sv.Operator):
    output = "payment int, customer string, amount double, currency string, dollars double, highest double"
    highest = sv.MapState()

    def process(self, row, port=0):
        time.sleep(0.01)
        yield
        dollars = row["amount"]
        highest = max(dollars, self.highest.get(row["customer"], 0.0))
        self.highest[row["customer"]] = highest
        yield {**row, "dollars": dollars, "highest": highest}
`;
const FD = `class FraudDetector(sv.Operator):
    output = "payment int, customer string, amount double, label string"
    blacklist = sv.MapState()

    def process(self, row, port=0):
        if row["dollars"] > 1000 and row["customer"] not in self.blacklist:
            self.blacklist[row["customer"]] = row["payment"]
        fraud = row["customer"] in self.blacklist
        yield {**row, "label": "Fraud" if fraud else "Approved"}
`;
const FIXED = 'dollars = (row["amount"] or 0.0) / (150 if row["currency"] == "JPY" else 1)';
const CONDITION = "label <> 'Fraud'";

const names = async (page) =>
  (await page.locator("[data-operator]").evaluateAll((all) => all.map((o) => o.dataset.operator))).sort();
const edges = (page) => page.locator(".react-flow__edge").count();
const status = (page) => page.getByLabel("Execution").innerText();
const counts = async (page, name) =>
  (await page.locator(`[data-operator="${name}"] .counts`).innerText()).replace(/\s+/g, " ");
const taken = async (page, name) =>
  Number(/in (\d+)/.exec(await counts(page, name).catch(() => ""))?.[1] ?? 0);
const settled = (page) => page.locator('.moment[aria-busy="false"]').waitFor({ timeout: 60_000 });
const changes = async (page) => {
  const table = page.getByRole("table", { name: "Changes" });
  return (await table.count()) ? table.innerText() : "";
};
const ended = (page) =>
  until(
    "the run",
    () => status(page),
    (text) => /^(Completed|Failed|Stopped)/.test(text),
    120,
  );
/** How many of Bob's payments come after the one in yen: what the blacklist costs him, that one with it. */
const REFUSED = [...Array(ROWS + 1).keys()].filter((i) => i >= YEN && (i % 5 === 1 || i === YEN)).length;

test("the fraud workflow is built with the mouse, run, steered, travelled back in, forked and compared", () =>
  watched(
    browser,
    "mouse",
    async () => {
      const page = await visitor(browser, "Ana");
      await make(page, "fraud by mouse");

      // the file, by the dialog of the browser
      await tab(page, "Files");
      const chooser = page.waitForEvent("filechooser");
      await page.getByRole("button", { name: "Upload" }).click();
      await (await chooser).setFiles({ name: "mouse.csv", mimeType: "text/csv", buffer: payments() });
      await page.getByRole("cell", { name: "mouse.csv" }).waitFor();

      // operators dragged onto the canvas, named, and connected from port to port
      const pane = page.locator(".react-flow__pane");
      const place = async (kind, name, x, y) => {
        const was = (await names(page)).length;
        await page.locator(`[data-kind="${kind}"]`).dragTo(pane, { targetPosition: { x, y } });
        await until(
          `one more: ${name}`,
          async () => (await names(page)).length,
          (n) => n === was + 1,
        );
        await page.getByLabel("Properties").getByLabel("name", { exact: true }).fill(name);
        await page.locator(`[data-operator="${name}"]`).waitFor();
      };
      const write = async (text) => {
        await page.locator(".properties .cm-content").first().click();
        await page.keyboard.press("Control+a");
        await page.keyboard.insertText(text);
      };
      await place("read:0", "payments", 20, 30);
      await page.getByLabel("Names for path").getByRole("button", { name: "mouse.csv" }).click();
      await place("python", "FE", 240, 30);
      await write(FE);
      await place("python", "FD", 460, 30);
      await write(FD);
      await place("filter", "FF", 120, 160);
      await write(CONDITION);
      await place("sink", "S", 380, 160);
      for (const [from, to] of [
        ["payments", "FE"],
        ["FE", "FD"],
        ["FD", "FF"],
        ["FF", "S"],
      ]) {
        const was = await edges(page);
        await page
          .locator(`[data-operator="${from}"] .react-flow__handle.source`)
          .dragTo(page.locator(`[data-operator="${to}"] .react-flow__handle.target`).first());
        await until(
          `${from} to ${to}`,
          () => edges(page),
          (n) => n === was + 1,
        );
      }
      await page.getByRole("button", { name: "Arrange" }).click();
      await page.getByRole("button", { name: /fit view/i }).click();
      assert.deepEqual(await names(page), ["FD", "FE", "FF", "S", "payments"]);
      await picture(page, "built");

      // it runs, is paused, looked into, and goes on to the tuple that it cannot take
      await page.getByRole("button", { name: "▶ Run" }).click();
      const early = await until(
        "counts",
        () => taken(page, "FE"),
        (n) => n > 5,
        120,
      );
      await until(
        "counts that rise",
        () => taken(page, "FE"),
        (n) => n > early,
      );
      await page.getByRole("button", { name: "Pause" }).click();
      await until(
        "the pause",
        () => status(page),
        (text) => text === "Paused by Ana",
      );
      await page.locator('[data-operator="FE"]').click();
      await tab(page, "Live");
      await page.getByRole("button", { name: "Inspect" }).click();
      assert.match(await page.getByRole("table", { name: "State of FE now" }).innerText(), /highest/);
      await page.getByRole("button", { name: "Resume" }).click();
      await until(
        "the held tuple",
        () => status(page),
        (text) => text.startsWith("FE holds a tuple: TypeError"),
        60,
      );
      await page.getByRole("button", { name: "Held by FE" }).click();
      const dialog = page.getByRole("dialog");
      assert.equal(await dialog.getByLabel("payment", { exact: true }).inputValue(), String(BAD));
      await dialog.getByLabel("amount", { exact: true }).fill("4.5");
      await dialog.getByRole("button", { name: "Retry with these values" }).click();
      assert.match(await ended(page), /^Completed/);
      assert.equal(await counts(page, "S"), `in ${ROWS - REFUSED}`);

      // back: to a number of tuples, then over, into, out and back
      await page.locator('[data-operator="FE"]').click();
      await tab(page, "Time");
      await page.getByLabel("tuples").first().fill("100");
      await page.getByRole("button", { name: "Jump", exact: true }).click();
      await until(
        "a hundred",
        () => counts(page, "FE"),
        (text) => text === "in 100 out 100",
        60,
      );
      assert.equal(await counts(page, "S"), "in 100");
      const step = async (name) => {
        await settled(page);
        await page.getByRole("button", { name, exact: true }).click();
      };
      await step("Over");
      await until(
        "over",
        () => counts(page, "S"),
        (text) => text === "in 101",
      );
      await step("Into");
      await until(
        "into",
        () => counts(page, "FE"),
        (text) => text.startsWith("in 102"),
      );
      assert.equal(await counts(page, "FD"), "in 101 out 101");
      await step("Out");
      await until(
        "out",
        () => counts(page, "S"),
        (text) => text === "in 102",
      );
      await step("Back");
      await until(
        "back",
        () => counts(page, "S"),
        (text) => text === "in 101",
      );

      // when did Bob come onto the blacklist, and by what
      await page.getByRole("combobox", { name: "operator" }).click();
      await page.getByRole("option", { name: "FD", exact: true }).click();
      await page.getByLabel("when", { exact: true }).fill("'Bob' in blacklist");
      await page.getByLabel("when", { exact: true }).press("Enter");
      await until(
        "Bob's tuple",
        () => changes(page),
        (text) => text.includes("FD.blacklist[Bob]"),
        60,
      );
      await settled(page);
      assert.match(
        await page.getByLabel("Moment").innerText(),
        new RegExp(`payment\\s+${YEN}[\\s\\S]*currency\\s+JPY`),
      );
      await picture(page, "when");

      // a fork from the beginning, with the code mended
      await page.locator('[data-operator="FE"]').click();
      await settled(page);
      await page.getByRole("slider", { name: "Timeline" }).focus();
      await page.keyboard.press("Home");
      await until(
        "the beginning",
        () => counts(page, "FE"),
        (text) => text === "in 0 out 0",
      );
      await page.locator(".cm-content").getByText('dollars = row["amount"]').click();
      await page.keyboard.press("End");
      await page.keyboard.press("Shift+Home");
      await page.keyboard.insertText(FIXED);
      await page.getByRole("button", { name: "Fork here" }).click();
      await until(
        "the fork",
        () =>
          page
            .getByRole("combobox", { name: "Shown run" })
            .inputValue()
            .catch(() => ""),
        (name) => name.includes("fork"),
        60,
      );
      assert.match(await ended(page), /^Completed/);
      assert.equal(await counts(page, "S"), `in ${ROWS}`);
      await tab(page, "Compare");
      await page.getByRole("button", { name: "Compare", exact: true }).click();
      assert.match(
        await until(
          "the verdict",
          () =>
            page
              .getByLabel("Verdict")
              .innerText()
              .catch(() => ""),
          (words) => words !== "",
          60,
        ),
        /^≠ Different/,
      );
      assert.equal(
        await page.getByRole("table", { name: "Rows that differ" }).getByText("Bob").count(),
        REFUSED,
      );
      assert.deepEqual(page.problems, []);
    },
    240,
  ));

test("the fraud workflow is built with the keyboard alone, run, steered, travelled back in, forked and compared", () =>
  watched(
    browser,
    "keys",
    async () => {
      const page = await visitor(browser, "Ana");
      const keys = page.keyboard;
      let built = 0;
      /** Goes on with Tab until the thing of that name has the focus. */
      const reach = async (name, most = 120) => {
        for (let i = 0; i < most; i++) {
          const at = await page.evaluate(() => {
            const e = document.activeElement;
            if (e?.getAttribute("role") === "tab") return [];
            return [
              e?.getAttribute("aria-label"),
              e?.labels?.[0]?.innerText,
              e?.tagName === "BUTTON" ? e.innerText : null,
            ].map((t) => (t ?? "").trim());
          });
          if (at.includes(name)) return;
          if (at.includes("code")) await keys.press("Escape"); // Tab indents in code, unless Escape was pressed before
          await keys.press("Tab");
        }
        assert.fail(`Tab does not lead to ${name}`);
      };
      const rewrite = async (text) => {
        await keys.press("Control+a");
        await keys.insertText(text);
      };
      const added = async (what, name) => {
        built += 1;
        await command(page, `add ${what}`);
        await until(
          `one more: ${name}`,
          async () => (await names(page)).length,
          (n) => n === built,
        );
        await command(page, "rename");
        await until(
          "the name has the focus",
          () => page.evaluate(() => document.activeElement?.closest(".properties") !== null),
          (yes) => yes,
        );
        await rewrite(name);
        await page.locator(`[data-operator="${name}"]`).waitFor();
      };
      const jump = async (operator, tuples) => {
        await command(page, `go to ${operator}`);
        await command(page, "show time");
        await reach("tuples");
        await rewrite(String(tuples));
        await reach("Jump");
        await keys.press("Enter");
        await until(
          `${tuples} of ${operator}`,
          () => counts(page, operator),
          (text) => text.startsWith(`in ${tuples} `),
          60,
        );
        await settled(page);
      };

      await page.getByLabel("New workflow").waitFor();
      await reach("New workflow");
      await keys.type("fraud by keys");
      await keys.press("Enter");
      await page.getByText("Nothing here yet").waitFor();
      await command(page, "show files");
      await reach("Upload");
      const chooser = page.waitForEvent("filechooser");
      await keys.press("Enter");
      await (await chooser).setFiles({ name: "keys.csv", mimeType: "text/csv", buffer: payments() });
      await page.getByRole("cell", { name: "keys.csv" }).waitFor();
      await added("csv files", "payments");
      await reach("path");
      await keys.type("keys.csv");
      await added("python", "FE");
      await reach("code");
      await rewrite(FE);
      await added("python", "FD");
      await reach("code");
      await rewrite(FD);
      await added("filter", "FF");
      await reach("condition");
      await rewrite(CONDITION);
      await keys.press("Escape");
      await added("sink", "S");
      assert.deepEqual(await names(page), ["FD", "FE", "FF", "S", "payments"]);
      assert.equal(await edges(page), 4);

      await keys.press("Control+Enter");
      const early = await until(
        "counts",
        () => taken(page, "FE"),
        (n) => n > 5,
        120,
      );
      await until(
        "counts that rise",
        () => taken(page, "FE"),
        (n) => n > early,
      );
      await command(page, "pause");
      await until(
        "the pause",
        () => status(page),
        (text) => text === "Paused by Ana",
      );
      await command(page, "go to FE");
      await command(page, "show live");
      await reach("Inspect");
      await keys.press("Enter");
      await page.getByRole("table", { name: "State of FE now" }).waitFor();
      await command(page, "resume");
      await until(
        "the held tuple",
        () => status(page),
        (text) => text.startsWith("FE holds a tuple: TypeError"),
        60,
      );
      await command(page, "decide on the tuple held by FE");
      await page.getByRole("dialog").getByLabel("amount", { exact: true }).waitFor();
      await reach("amount");
      await rewrite("4.5");
      await reach("Retry with these values");
      await keys.press("Enter");
      assert.match(await ended(page), /^Completed/);
      assert.equal(await counts(page, "S"), `in ${ROWS - REFUSED}`);

      await jump("FE", 100);
      assert.equal(await counts(page, "S"), "in 100");
      await keys.press("F10");
      await until(
        "over",
        () => counts(page, "S"),
        (text) => text === "in 101",
      );
      await settled(page);
      await keys.press("F11");
      await until(
        "into",
        () => counts(page, "FE"),
        (text) => text.startsWith("in 102"),
      );
      assert.equal(await counts(page, "FD"), "in 101 out 101");
      await settled(page);
      await keys.press("Shift+F11");
      await until(
        "out",
        () => counts(page, "S"),
        (text) => text === "in 102",
      );
      await settled(page);
      await keys.press("Shift+F10");
      await until(
        "back",
        () => counts(page, "S"),
        (text) => text === "in 101",
      );
      await command(page, "go to FD");
      await command(page, "show time");
      await reach("when");
      await keys.type("'Bob' in blacklist");
      await keys.press("Enter");
      await until(
        "Bob's tuple",
        () => changes(page),
        (text) => text.includes("FD.blacklist[Bob]"),
        60,
      );
      await settled(page);

      await command(page, "go to FE");
      await command(page, "show time");
      await reach("Timeline");
      await keys.press("Home");
      await until(
        "the beginning",
        () => counts(page, "FE"),
        (text) => text === "in 0 out 0",
      );
      await command(page, "edit FE");
      await reach("code");
      await rewrite(FE.replace('dollars = row["amount"]', FIXED));
      await command(page, "show time");
      await reach("Fork here");
      await keys.press("Enter");
      await until(
        "the fork",
        () =>
          page
            .getByRole("combobox", { name: "Shown run" })
            .inputValue()
            .catch(() => ""),
        (name) => name.includes("fork"),
        60,
      );
      assert.match(await ended(page), /^Completed/);
      assert.equal(await counts(page, "S"), `in ${ROWS}`);
      await command(page, "show compare");
      await until(
        "both runs",
        () => page.getByRole("button", { name: "Compare", exact: true }).isEnabled(),
        (yes) => yes,
      );
      await reach("Compare");
      await keys.press("Enter");
      assert.match(
        await until(
          "the verdict",
          () =>
            page
              .getByLabel("Verdict")
              .innerText()
              .catch(() => ""),
          (words) => words !== "",
          60,
        ),
        /^≠ Different/,
      );
      assert.deepEqual(await barriers(page), []);
      assert.deepEqual(page.problems, []);
    },
    240,
  ));
