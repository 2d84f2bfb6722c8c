import { expect, it } from "vitest";
import * as Y from "yjs";

import { Comments, difference } from "./comments";
import { SharedWorkflow } from "./shared";

it("comments typed in at both ends by two people are merged", () => {
  const a = new SharedWorkflow(new Y.Doc());
  const b = new SharedWorkflow(new Y.Doc());
  const [one, two] = [new Comments(a), new Comments(b)];
  const id = one.add(10, 20, "tea");
  Y.applyUpdate(b.doc, Y.encodeStateAsUpdate(a.doc));
  one.write(id, "green tea");
  two.write(id, "tea with milk");
  Y.applyUpdate(b.doc, Y.encodeStateAsUpdate(a.doc));
  Y.applyUpdate(a.doc, Y.encodeStateAsUpdate(b.doc));
  expect(one.current()[0]!.text).toBe("green tea with milk");
  expect(two.current()).toEqual(one.current());
});

it("undo takes a comment back, and leaves what others wrote", () => {
  const shared = new SharedWorkflow(new Y.Doc());
  const comments = new Comments(shared);
  const other = new Y.Doc();
  comments.add(0, 0, "mine");
  Y.applyUpdate(other, Y.encodeStateAsUpdate(shared.doc));
  const theirs = new Comments(new SharedWorkflow(other));
  theirs.add(5, 5, "theirs");
  Y.applyUpdate(shared.doc, Y.encodeStateAsUpdate(other));
  shared.undo.undo();
  expect(comments.current().map((c) => c.text)).toEqual(["theirs"]);
});

it("a difference is the smallest single replacement", () => {
  expect(difference("abcd", "abXd")).toEqual({ start: 2, gone: 1, added: "X" });
  expect(difference("aa", "aaa")).toEqual({ start: 2, gone: 0, added: "a" });
  expect(difference("same", "same")).toEqual({ start: 4, gone: 0, added: "" });
});

it("nonsense in the shared map is left out", () => {
  const shared = new SharedWorkflow(new Y.Doc());
  const comments = new Comments(shared);
  shared.doc.getMap("comments").set("x", "no comment" as unknown as Y.Map<unknown>);
  expect(comments.current()).toEqual([]);
});
