import { describe, expect, it } from "vitest";

import { PAGE, Pages } from "./pages";

describe("pages of a result", () => {
  it("load what is looked at and forget what was looked at long ago", async () => {
    const asked: number[] = [];
    let changes = 0;
    const pages = new Pages(
      async (start, size) => {
        asked.push(start);
        return {
          columns: [{ name: "n", type: "int" }],
          rows: Array.from({ length: size }, (_, i) => ({ n: start + i })),
          start,
          total: 1_000_000,
        };
      },
      () => changes++,
    );
    await pages.fetch(0);
    expect(pages.row(5)).toEqual({ n: 5 });
    expect(pages.row(999_950)).toBeUndefined();
    await new Promise((done) => setTimeout(done, 0));
    expect(pages.row(999_950)).toEqual({ n: 999_950 });
    for (let page = 1; page < 60; page++) await pages.fetch(page);
    expect(asked.length).toBe(61);
    expect(pages.row(5)).toBeUndefined();
    expect(pages.row(59 * PAGE)).toEqual({ n: 59 * PAGE });
    expect(changes).toBeGreaterThan(60);
  });
  it("stop asking after an error, and show it", async () => {
    let asked = 0;
    const pages = new Pages(
      () => (asked++, Promise.reject(new Error("no"))),
      () => undefined,
    );
    await pages.fetch(0);
    pages.row(0);
    expect([asked, pages.problem?.message]).toEqual([1, "no"]);
  });
});
