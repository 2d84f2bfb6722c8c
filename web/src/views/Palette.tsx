import { Text, TextInput } from "@mantine/core";
import { useReactFlow } from "@xyflow/react";
import { useEffect, useRef, useState } from "react";

import { grouped, search } from "../model/palette";
import type { OperatorKind } from "../model/types";
import { useBench } from "./bench";

export const DRAGGED = "application/x-samovar-operator";

/** The operators: click or Enter adds one after the selected operator; drag puts it where it is dropped. */
export function Palette() {
  const { kinds, shared, selected, select, tell } = useBench();
  const [query, setQuery] = useState("");
  const flow = useReactFlow();
  const input = useRef<HTMLInputElement>(null);
  const found = search([...kinds.values()], query);

  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const typing = (event.target as HTMLElement).closest("input, textarea, [contenteditable]");
      if (event.key === "/" && !typing) {
        event.preventDefault();
        input.current?.focus();
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);

  const add = (kind: OperatorKind): void => {
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
  };

  return (
    <nav className="palette" aria-label="Palette">
      <TextInput
        ref={input} size="xs" placeholder="Search operators ( / )" aria-label="Search operators" value={query} mb="xs"
        onChange={(e) => setQuery(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key === "Enter" && found[0]) {
            add(found[0]);
            setQuery("");
          }
        }}
      />
      {found.length === 0 && <Text size="sm" c="dimmed">No operator has “{query}” in its name or description.</Text>}
      {grouped(found).map(([group, members]) => (
        <section key={group} aria-label={group}>
          <Text size="xs" fw={700} c="dimmed" mt={6}>{group}</Text>
          {members.map((kind) => (
            <button
              key={kind.op} type="button" className="kind" title={kind.description} draggable
              data-kind={kind.op} onClick={() => add(kind)}
              onDragStart={(e) => e.dataTransfer.setData(DRAGGED, kind.op)}
            >
              {kind.op.replaceAll("_", " ")}
              <small>{kind.summary}</small>
            </button>
          ))}
        </section>
      ))}
    </nav>
  );
}
