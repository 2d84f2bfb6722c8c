import { describe, expect, it } from "vitest";

import { brief, count, isAbsent } from "./values";

describe("values", () => {
  it("are short and told apart", () => {
    expect(brief({ $map: [[1, "a"]], $more: 3 })).toBe('{1: "a", … 3 more}');
    expect(brief("x".repeat(100), 10)).toHaveLength(10);
    expect(isAbsent({ $absent: true })).toBe(true);
    expect(brief(12345678901.25)).toBe("12345678901.25"); // all digits: two that differ look different
    expect(brief(0.1 + 0.2)).toBe("0.30000000000000004");
    expect(count(1234567)).toBe("1\u202f234\u202f567");
  });
});
