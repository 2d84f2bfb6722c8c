/** A browser for the tests: Debian's chromium, or the one that CHROMIUM names. */
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

import { chromium } from "playwright-core";

export const LINK = process.env.SAMOVAR_LINK;
const OUT = process.env.SAMOVAR_PICTURES;
/** How many times as long as usual everything may take: for a machine that is busy with other things. */
const PATIENCE = Number(process.env.SAMOVAR_PATIENCE ?? 1);
let waiting = "nothing yet";

export async function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
}

/** A person with a browser of their own, at the workspace's first page. */
export async function visitor(browser, name, link = LINK) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  context.setDefaultTimeout(15_000 * PATIENCE);
  await context.addInitScript((who) => {
    localStorage.setItem(
      "samovar-person",
      JSON.stringify({ name: who, color: "#1971c2", colorLight: "#1971c233" }),
    );
  }, name);
  const page = await context.newPage();
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && /Content Security|Uncaught|React/.test(message.text()))
      page.problems.push(message.text());
  });
  await page.goto(link);
  return page;
}

/** Makes an empty workflow, as somebody does at the first page. */
export async function make(page, name) {
  await page.getByLabel("New workflow").fill(name);
  await page.getByRole("button", { name: "Make" }).click();
  await page.getByLabel("Search operators").waitFor();
}

/** Makes a workflow from a document and opens it; gives its address. */
export async function made(page, document) {
  const id = await page.evaluate(async (given) => {
    const answer = await fetch("/api/workflows", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: given.name, document: given }),
    });
    return (await answer.json()).workflow;
  }, document);
  await page.goto(new URL(`#/w/${id}`, page.url()).href);
  await page.locator("[data-operator]").first().waitFor();
  return page.url();
}

/** Shows a panel below the canvas. */
export async function tab(page, name) {
  await page.getByRole("tab", { name, exact: true }).click();
}

/**
 * Runs a test's body. When it fails, or is not done in time, every open page is kept as a picture; what was waited for
 * last is told.
 */
export async function watched(browser, name, body, usual = 180) {
  const seconds = usual * PATIENCE;
  let timer;
  waiting = "nothing yet";
  const late = new Promise((_, fail) => {
    timer = setTimeout(
      () => fail(new Error(`${name}: expected to be done in ${seconds} s; last waited for: ${waiting}`)),
      seconds * 1000,
    );
  });
  try {
    await Promise.race([body(), late]);
  } catch (error) {
    const pages = browser.contexts().flatMap((context) => context.pages());
    await Promise.all(pages.map((page, i) => picture(page, `failed-${name}-${i}`)));
    throw error;
  } finally {
    clearTimeout(timer);
    await stopAll(browser.contexts()[0]?.pages()[0]).catch(() => undefined);
    await Promise.all(browser.contexts().map((context) => context.close()));
  }
}

/** Stops what still runs, so that the next test does not wait for it. */
async function stopAll(page) {
  await page?.evaluate(async () => {
    const all = await (await fetch("/api/executions")).json();
    for (const one of all.filter((e) => !["completed", "failed", "stopped"].includes(e.status))) {
      await fetch(`/api/executions/${one.execution}/stop`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: "{}",
      });
    }
  });
}

export async function picture(page, name) {
  if (!OUT) return;
  mkdirSync(OUT, { recursive: true });
  await page.screenshot({ path: path.join(OUT, `${name}.png`) });
}

/** Runs a command by name, from the keyboard alone. */
export async function command(page, text) {
  await page.keyboard.press("Control+k");
  await until(
    "the cursor in the command",
    () => page.evaluate(() => document.activeElement?.getAttribute("aria-label")),
    (label) => label === "Command",
  );
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
  await page.getByLabel("Command", { exact: true }).waitFor({ state: "hidden" });
}

/** The code that stands in an editor, without the carets of others. */
export async function codeOf(page) {
  return page.locator(".cm-content").evaluate((c) =>
    [...c.querySelectorAll(".cm-line")]
      .map((l) => {
        const copy = l.cloneNode(true);
        for (const widget of copy.querySelectorAll(".cm-ySelectionCaret")) widget.remove();
        return copy.textContent;
      })
      .join("\n"),
  );
}

/** Waits until something holds, and says what was there instead. */
export async function until(what, look, wanted, usual = 60) {
  const seconds = usual * PATIENCE;
  const end = Date.now() + seconds * 1000;
  waiting = what;
  let seen;
  while (Date.now() < end) {
    seen = await look();
    if (wanted(seen)) return seen;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`${what}: still ${JSON.stringify(seen)} after ${seconds} s`);
}

/** What axe finds serious or critical on a page. */
export async function barriers(page) {
  await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
  await page.evaluate(() =>
    Promise.race([
      // colours on their way are no colours
      Promise.all(document.getAnimations().map((moving) => moving.finished.catch(() => undefined))),
      new Promise((done) => setTimeout(done, 1000)),
    ]),
  );
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations
    .filter((v) => ["serious", "critical"].includes(v.impact))
    .map(
      (v) =>
        `${v.id} (${v.nodes.length}): ${v.nodes
          .slice(0, 4)
          .map((n) => `${n.target.join(" ")} ${n.failureSummary}`)
          .join(" | ")}`,
    );
}
