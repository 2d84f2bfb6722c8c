import { describe, expect, it } from "vitest";

import { Api, ApiError } from "./api";

describe("the API", () => {
  it("gives the server's message and hint", async () => {
    const body = {
      error: {
        kind: "UnknownName",
        message: "Expected an operator, got 'x'.",
        hint: "Did you mean 'y'?",
        operator: null,
      },
    };
    const api = new Api(async () => new Response(JSON.stringify(body), { status: 422 }));
    const error = await api.recording("a/b").catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).hint).toBe("Did you mean 'y'?");
  });
  it("encodes what stands in paths", async () => {
    let path = "";
    const api = new Api(async (given) => ((path = given), new Response("{}")));
    await api.state("r", "m1", "a b/c");
    expect(path).toBe("/api/recordings/r/moments/m1/state/a%20b%2Fc");
  });
  it("leaves out of the query what is not asked for, and keeps the folders of a file", async () => {
    const asked: string[] = [];
    const api = new Api(async (path) => (asked.push(path), new Response("{}")));
    await api.page("r", "S", { start: 0, count: 10, sort: "a&b", descending: false, where: undefined });
    await api.upload("in/a b.csv", new Blob(["x"]));
    expect(asked).toEqual([
      "/api/recordings/r/results/S?start=0&count=10&sort=a%26b&descending=false",
      "/api/files/in/a%20b.csv",
    ]);
  });
});
