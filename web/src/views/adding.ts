import { useReactFlow } from "@xyflow/react";
import { useCallback } from "react";

import type { OperatorKind } from "../model/types";
import { useBench } from "./bench";

/** Adds an operator after the selected one and connects it; without a selection, where there is room. */
export function useAdd(): (kind: OperatorKind) => void {
  const { kinds, shared, selected, select, tell } = useBench();
  const flow = useReactFlow();
  return useCallback((kind) => {
    const before = shared.current().operators.find((o) => o.id === selected);
    const canvas = document.querySelector(".canvas")!.getBoundingClientRect();
    const count = shared.current().operators.length;
    const free = flow.screenToFlowPosition({ x: canvas.left + 60, y: canvas.top + 60 + (count % 6) * 70 });
    const id = shared.add(kind, before ? before.x + 240 : free.x, before ? before.y : free.y);
    const port = shared.freePort(id, kind.ports.most);
    if (before && port !== null && kinds.get(before.op)?.output) {
      const problem = shared.connect(before.id, id, port);
      if (problem) tell(problem);
    }
    select(id);
    const at = shared.current().operators.find((o) => o.id === id)!;
    const corner = flow.flowToScreenPosition({ x: at.x + 180, y: at.y + 90 });
    if (corner.x > canvas.right || corner.y > canvas.bottom || corner.x < canvas.left + 180) {
      setTimeout(() => void flow.fitView({ maxZoom: 1, duration: 200 }), 50); // when it has been drawn
    }
  }, [kinds, shared, selected, select, tell, flow]);
}
