import { useReactFlow } from "@xyflow/react";
import { useCallback, useRef } from "react";

import type { OperatorKind } from "../../model/types";
import { useDocument } from "../context";

/** Adds an operator after the selected one and connects it; without a selection, where there is room. */
export function useAdd(): (kind: OperatorKind) => void {
  const { kinds, shared, selected, select, tell } = useDocument();
  const flow = useReactFlow();
  const latest = useRef(selected); // a command may have been listed before the last selection
  latest.current = selected;
  return useCallback(
    (kind) => {
      const before = shared.current().operators.find((o) => o.id === latest.current);
      const canvas = document.querySelector(".canvas")!.getBoundingClientRect();
      const count = shared.current().operators.length;
      const free = flow.screenToFlowPosition({ x: canvas.left + 60, y: canvas.top + 60 + (count % 6) * 70 });
      const at = room(shared.current().operators, before ? { x: before.x + 240, y: before.y } : free);
      const id = shared.add(kind, Math.round(at.x), Math.round(at.y));
      const port = shared.freePort(id, kind.ports.most);
      if (before && port !== null && kinds.get(before.op)?.output) {
        const problem = shared.connect(before.id, id, port);
        if (problem) tell(problem);
      }
      select(id);
      const corner = flow.flowToScreenPosition({ x: at.x + 180, y: at.y + 90 });
      if (corner.x > canvas.right || corner.y > canvas.bottom || corner.x < canvas.left + 180) {
        setTimeout(() => void flow.fitView({ maxZoom: 1, duration: 200 }), 50); // when it has been drawn
      }
    },
    [kinds, shared, select, tell, flow],
  );
}

/** The first place at or below the wanted one where an operator covers no other. */
export function room(
  taken: { x: number; y: number }[],
  wanted: { x: number; y: number },
): { x: number; y: number } {
  let { y } = wanted;
  while (taken.some((o) => Math.abs(o.x - wanted.x) < 200 && Math.abs(o.y - y) < 90)) y += 100;
  return { x: wanted.x, y };
}
