import { describe, expect, it } from "vitest";

import { person } from "./person";

describe("a person", () => {
  it("keeps name and colour", () => {
    const kept = new Map<string, string>();
    const storage = {
      getItem: (k: string) => kept.get(k) ?? null,
      setItem: (k: string, v: string) => void kept.set(k, v),
    };
    const first = person(storage);
    expect(person(storage)).toEqual(first);
  });
});
