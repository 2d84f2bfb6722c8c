import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import { codeOf, launch, make, picture, until, visitor, watched } from "./browser.mjs";

const SERVE = JSON.parse(process.env.SAMOVAR_SERVE ?? '["samovar", "serve"]');
const TOKEN = "kept-over-the-restart";

let browser;
let folder;
let server = null;
before(async () => {
  browser = await launch();
  folder = mkdtempSync(path.join(tmpdir(), "samovar-restart-"));
});
after(async () => {
  if (server !== null) await killed();
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the server; gives its link. */
async function started(port) {
  const [program, ...given] = SERVE;
  server = spawn(
    program,
    [...given, "--workspace", path.join(folder, "workspace"), "--token", TOKEN, "--port", String(port)],
    { cwd: folder, stdio: ["ignore", "pipe", "inherit"] },
  );
  let said = "";
  server.stdout.on("data", (data) => (said += data));
  return until(
    "the link",
    () => /http:\S+/.exec(said)?.[0] ?? "",
    (link) => link !== "",
  );
}

/** Ends the server as a crash does: at once, with no chance to write anything. */
async function killed() {
  const gone = new Promise((done) => server.once("exit", done));
  server.kill("SIGKILL");
  await gone;
  server = null;
}

const add = (page, kind) => page.locator(`[data-kind="${kind}"]`).click();
const names = async (page) =>
  (await page.locator("[data-operator]").evaluateAll((all) => all.map((o) => o.dataset.operator))).sort();
const lost = (page) => page.getByText("offline: edits are kept").waitFor();
const open = (page, name) => page.locator(`[data-operator="${name}"]`).click();

/** Types at the beginning of the code that is open. */
async function type(page, line) {
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+Home");
  await page.keyboard.type(`${line}\n`, { delay: 2 });
}

test("the server is killed while two people edit; they go on, and nobody loses an edit", () =>
  watched(browser, "restart", async () => {
    const link = await started(0);
    const port = new URL(link).port;
    const ana = await visitor(browser, "Ana", link);
    const bob = await visitor(browser, "Bob", link);
    await make(ana, "shop");
    await bob.goto(ana.url());
    await until(
      "Ana sees Bob",
      () => ana.getByLabel("People").innerText(),
      (text) => text.includes("Bob"),
    );
    await add(ana, "values");
    await add(ana, "python");
    await until(
      "Bob sees both",
      () => names(bob),
      (all) => all.join() === "python,values",
    );
    await open(bob, "python");
    await Promise.all([type(ana, "# Ana was here"), type(bob, "# Bob was here")]);
    await until(
      "one code",
      async () => [await codeOf(ana), await codeOf(bob)],
      ([a, b]) => a === b && a.includes("# Ana was here") && a.includes("# Bob was here"),
    );

    await killed();
    await Promise.all([lost(ana), lost(bob)]);
    await type(ana, "# Ana went on");
    await type(bob, "# Bob went on");
    await add(ana, "distinct");
    await add(bob, "limit");
    await picture(ana, "offline");

    assert.equal(new URL(await started(port)).port, port);
    const [code] = await until(
      "one code again",
      async () => {
        await Promise.all([open(ana, "python"), open(bob, "python")]);
        return [await codeOf(ana), await codeOf(bob)];
      },
      ([a, b]) =>
        a === b &&
        ["Ana was here", "Bob was here", "Ana went on", "Bob went on"].every((words) =>
          a.includes(`# ${words}`),
        ),
    );
    await until(
      "one canvas again",
      async () => [await names(ana), await names(bob)],
      ([a, b]) => a.join() === b.join() && a.join() === "distinct,limit,python,values",
    );
    await until(
      "they see each other again",
      () => ana.getByLabel("People").innerText(),
      (text) => text.includes("Bob"),
    );

    // killed again, and both are gone: who comes now has it from the server's disk alone
    const url = ana.url();
    await killed();
    assert.deepEqual([...ana.problems, ...bob.problems], []);
    await Promise.all([ana.context().close(), bob.context().close()]);
    const cem = await visitor(browser, "Cem", await started(port));
    await cem.goto(url);
    await until(
      "the canvas",
      () => names(cem),
      (all) => all.join() === "distinct,limit,python,values",
    );
    await open(cem, "python");
    await cem.locator(".cm-content").waitFor();
    assert.equal(await codeOf(cem), code);
    assert.deepEqual(cem.problems, []);
  }));
