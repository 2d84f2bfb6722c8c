import { ViewportPortal, useReactFlow } from "@xyflow/react";
import { type KeyboardEvent, type PointerEvent, useRef, useSyncExternalStore } from "react";

import type { Comment } from "../../model/comments";
import { useDocument, useSnapshot } from "../context";
import { commentsOf } from "../../model/comments";

/** Comments behind the operators: dragged by their bar, sized at their corner, typed in by several at once. */
export function CommentLayer() {
  const { shared } = useDocument();
  const comments = commentsOf(shared);
  const all = useSyncExternalStore(comments.subscribe, comments.current);
  const empty = useSnapshot(shared).operators.length === 0 && all.length === 0;
  return (
    <>
      {empty && (
        <div className="empty">Nothing here yet. Choose a source in the palette, or press Ctrl+K.</div>
      )}
      <ViewportPortal>
        {all.map((c) => (
          <Box key={c.id} comment={c} />
        ))}
      </ViewportPortal>
    </>
  );
}

const STEPS: Record<string, [number, number]> = {
  ArrowLeft: [-10, 0],
  ArrowRight: [10, 0],
  ArrowUp: [0, -10],
  ArrowDown: [0, 10],
};

function Box({ comment }: { comment: Comment }) {
  const { shared } = useDocument();
  const comments = commentsOf(shared);
  const flow = useReactFlow();
  const start = useRef<{ x: number; y: number; from: Comment } | null>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const { id, x, y, width, height, text } = comment;
  const grab = (e: PointerEvent<HTMLElement>): void => {
    e.currentTarget.setPointerCapture(e.pointerId);
    start.current = { x: e.clientX, y: e.clientY, from: comment };
  };
  const drag = (e: PointerEvent): void => {
    if (!start.current) return;
    const zoom = flow.getZoom();
    const { from } = start.current;
    comments.place(id, {
      x: Math.round(from.x + (e.clientX - start.current.x) / zoom),
      y: Math.round(from.y + (e.clientY - start.current.y) / zoom),
    });
  };
  const nudge = (e: KeyboardEvent): void => {
    const step = STEPS[e.key];
    if (step)
      comments.place(
        id,
        e.shiftKey
          ? { width: Math.max(80, width + step[0]), height: Math.max(40, height + step[1]) }
          : { x: x + step[0], y: y + step[1] },
      );
    else if (e.key === "Delete" || e.key === "Backspace") comments.remove(id);
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  const sized = (): void => {
    const box = area.current;
    if (box) comments.place(id, { width: box.offsetWidth, height: box.offsetHeight + 20 });
  };
  return (
    <div className="comment nodrag nopan nowheel" style={{ left: x, top: y }} data-comment={id}>
      <div className="bar">
        <button
          type="button"
          className="handle"
          aria-label="Move comment (arrows; with Shift: size; Del: remove)"
          onPointerDown={grab}
          onPointerMove={drag}
          onPointerUp={() => (start.current = null)}
          onKeyDown={nudge}
        />
        <button type="button" aria-label="Remove comment" onClick={() => comments.remove(id)}>
          ×
        </button>
      </div>
      <textarea
        ref={area}
        aria-label="Comment"
        value={text}
        placeholder="Say something about this part"
        style={{ width, height: height - 20 }}
        onChange={(e) => comments.write(id, e.currentTarget.value)}
        onPointerUp={sized}
      />
    </div>
  );
}
