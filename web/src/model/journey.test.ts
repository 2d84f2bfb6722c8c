import { describe, expect, it } from "vitest";

import { Api } from "./api";
import { Journey, changedCode, link, parseLink } from "./journey";
import { sampleMoment } from "./samples";

describe("a link to a moment", () => {
  it("is read as it was written", () => {
    const address = {
      to: { operator: "a & b", tuples: 5 },
      steps: [
        ["over", "é/#?"],
        ["out", null],
      ] as [string, string | null][],
    };
    expect(parseLink(link("shop", "run-1", address))).toEqual({ run: "run-1", address });
    expect(parseLink(link("shop", "run-1", null))).toEqual({ run: "run-1" });
  });
  it("that is no link leads nowhere", () => {
    expect(parseLink("#/w/shop")).toBeNull();
    expect(parseLink("#/w/shop?run=r&at=[1")).toEqual({ run: "r" });
    expect(parseLink('#/w/shop?run=r&at={"to":1}')).toEqual({ run: "r" });
  });
});

describe("a journey", () => {
  /** A journey whose server answers with what stands here, and the paths that were asked for. */
  function travelling(answers: (path: string) => unknown) {
    const asked: string[] = [];
    const told: unknown[] = [];
    const api = new Api(async (path, init) => {
      asked.push(`${path} ${String(init?.body ?? "")}`.trim());
      return new Response(JSON.stringify(answers(path)));
    });
    const journey = new Journey(api, (problem) => told.push(problem), { run: "r", moment: "m7" });
    const arrived = async (): Promise<void> => {
      while (journey.current().busy) await new Promise((done) => setTimeout(done, 0));
    };
    return { journey, asked, told, arrived };
  }

  it("takes a visit up once, when the run it leads to is open", async () => {
    const { journey, asked, arrived } = travelling(() => sampleMoment(1, 5));
    journey.takeUpVisit("other");
    expect(asked).toEqual([]);
    journey.takeUpVisit("r");
    await arrived();
    journey.takeUpVisit("r");
    expect(asked).toEqual(["/api/recordings/r/moments/m7"]);
    expect(journey.current()).toMatchObject({ moment: { epoch: 1 }, visiting: null, busy: false });
  });
  it("steps from the moment it is at, one step at a time", async () => {
    const { journey, asked, arrived } = travelling(() => sampleMoment(1, 5));
    journey.step("r", "over", "FE");
    expect(asked).toEqual([]); // in the present there is nothing to step from
    journey.jump("r", { epoch: 1 });
    await arrived();
    journey.light({ operators: ["FE"], from: [], tuples: [] });
    journey.step("r", "over", "FE");
    journey.step("r", "out", "FE");
    await arrived();
    expect(asked.slice(1)).toEqual(['/api/recordings/r/step {"moment":"m1","how":"over","operator":"FE"}']);
    expect(journey.current().scope).toBeNull();
    journey.leave();
    expect(journey.current().moment).toBeNull();
  });
  it("stays where it is when there is no such moment, and says so", async () => {
    const { journey, told, arrived } = travelling(() => ({ found: null }));
    journey.first("r", "FE", "n > 5");
    await arrived();
    expect(told).toEqual(["That never happened in this run."]);
    expect(journey.current().moment).toBeNull();
  });
  it("forks with the code that was changed on the canvas", () => {
    const recording = {
      code: { FE: "old", FD: "same" },
      operators: ["FE", "FD"].map((name) => ({ name, op: "python", inputs: ["in"] })),
    };
    const operator = (name: string, code: string) => ({
      id: name,
      name,
      op: "python",
      x: 0,
      y: 0,
      fields: { code },
    });
    const now = [operator("FE", "new"), operator("FD", "same"), operator("added", "new")];
    expect(changedCode(recording, now)).toEqual({ FE: "new" });
  });
});
