import { Comments } from "../model/comments";
import type { SharedWorkflow } from "../model/shared";

const known = new WeakMap<SharedWorkflow, Comments>();

/** The comments of a workflow: one object for all views of it. */
export function commentsOf(shared: SharedWorkflow): Comments {
  let found = known.get(shared);
  if (!found) known.set(shared, (found = new Comments(shared)));
  return found;
}
