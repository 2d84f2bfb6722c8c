import {
  Background,
  Controls,
  type Connection as FlowConnection,
  type EdgeChange,
  MiniMap,
  type NodeChange,
  ReactFlow,
  ViewportPortal,
  applyNodeChanges,
  useReactFlow,
} from "@xyflow/react";
import { useComputedColorScheme } from "@mantine/core";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { entries } from "../../model/palette";
import type { Copied, Edge, Operator } from "../../model/shared";
import type { OperatorKind } from "../../model/types";
import { type OperatorData, OperatorNode, type OperatorNodeType } from "./OperatorNode";
import { CommentLayer } from "./CommentLayer";
import { DRAGGED } from "../palette/Palette";
import { type Other, useOthers } from "../people/useOthers";
import { TupleEdge, flowEdges } from "./TupleEdge";
import { useDocument, useSnapshot, useTravelled } from "../context";

const NODES = { operator: OperatorNode };
const EDGES = { tuples: TupleEdge };

export function Canvas() {
  const { shared, kinds, select, selected, setEdge, tell, connection, checked } = useDocument();
  const scope = useTravelled((now) => now.scope);
  const snapshot = useSnapshot(shared);
  const others = useOthers();
  const [nodes, setNodes] = useState<OperatorNodeType[]>([]);
  const shown = useRef(nodes); // several changes may come before the next drawing
  shown.current = nodes;
  const flow = useReactFlow();
  const scheme = useComputedColorScheme("light");
  const copied = useRef<Copied | null>(null);
  const dragging = useRef(new Set<string>());
  const data = useNodeData(others);

  useEffect(() => {
    setNodes((before) => {
      const known = new Map(before.map((n) => [n.id, n]));
      return snapshot.operators.map((operator) => {
        const old = known.get(operator.id);
        const made = data(operator);
        const held = old !== undefined && dragging.current.has(operator.id);
        if (
          old &&
          sameData(old.data, made) &&
          (held || (old.position.x === operator.x && old.position.y === operator.y))
        ) {
          return old; // not drawn again
        }
        const position = held ? old.position : { x: operator.x, y: operator.y };
        return {
          ...old,
          id: operator.id,
          type: "operator",
          position,
          selected: old?.selected ?? false,
          data: made,
        };
      });
    });
  }, [snapshot, data]);

  useEffect(() => {
    setNodes((before) =>
      before.some((n) => n.id === selected && n.selected) || selected === null
        ? before
        : before.map((n) => ({ ...n, selected: n.id === selected })),
    );
  }, [selected, snapshot]);

  const [chosenEdges, setChosenEdges] = useState(new Set<string>());
  const edges = useMemo(
    () => flowEdges(snapshot, checked.problems, scope, chosenEdges),
    [snapshot, checked.problems, scope, chosenEdges],
  );

  const changeNodes = useCallback(
    (changes: NodeChange<OperatorNodeType>[]) => {
      const gone = changes.flatMap((c) => (c.type === "remove" ? [c.id] : []));
      if (gone.length > 0) shared.remove(gone);
      shown.current = applyNodeChanges(
        changes.filter((c) => c.type !== "remove"),
        shown.current,
      );
      setNodes(shown.current);
      if (changes.some((c) => c.type === "select"))
        select(shown.current.findLast((n) => n.selected)?.id ?? null);
      else if (gone.length > 0) select(null);
    },
    [shared, select],
  );
  const changeEdges = useCallback(
    (changes: EdgeChange[]) => {
      const gone = changes.flatMap((c) => (c.type === "remove" ? [c.id] : []));
      if (gone.length > 0) shared.disconnect(gone);
      const picked = changes.flatMap((c) => (c.type === "select" ? [c] : []));
      if (picked.length > 0) {
        setChosenEdges((before) => {
          const after = new Set(before);
          for (const c of picked)
            if (c.selected) after.add(c.id);
            else after.delete(c.id);
          return after;
        });
      }
    },
    [shared],
  );
  const connect = useCallback(
    (made: FlowConnection) => {
      const problem = shared.connect(made.source, made.target, Number(made.targetHandle?.slice(3) ?? 0));
      if (problem) tell(problem);
    },
    [shared, tell],
  );
  const dragged = useThrottled((moved: OperatorNodeType[]) => {
    shared.move(moved.map((n) => ({ id: n.id, x: Math.round(n.position.x), y: Math.round(n.position.y) })));
  }, 50);

  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const typing = (event.target as HTMLElement).closest("input, textarea, [contenteditable], .cm-editor");
      if (typing || !(event.ctrlKey || event.metaKey)) return;
      const chosen = nodes.filter((n) => n.selected).map((n) => n.id);
      const key = event.key.toLowerCase();
      if (key === "z" && !event.shiftKey) shared.undo.undo();
      else if (key === "z") shared.undo.redo();
      else if (key === "y") shared.undo.redo();
      else if (key === "c") copied.current = shared.copy(chosen);
      else if (key === "v" && copied.current) shared.paste(copied.current);
      else if (key === "d") shared.paste(shared.copy(chosen));
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [nodes, shared]);

  const pointed = useThrottled((x: number, y: number) => {
    connection.awareness.setLocalStateField("pointer", flow.screenToFlowPosition({ x, y }));
  }, 60);

  return (
    <ReactFlow
      nodes={nodes}
      edges={edges}
      nodeTypes={NODES}
      edgeTypes={EDGES}
      onNodesChange={changeNodes}
      onEdgesChange={changeEdges}
      onEdgeClick={(_, clicked) => setEdge(clicked.id)}
      onConnect={connect}
      isValidConnection={(c) => shared.whyNot(c.source, c.target) === null}
      onNodeDragStart={(_, __, moved) => moved.forEach((n) => dragging.current.add(n.id))}
      onNodeDrag={(_, __, moved) => dragged(moved)}
      onNodeDragStop={(_, __, moved) => {
        dragging.current.clear();
        shared.move(
          moved.map((n) => ({ id: n.id, x: Math.round(n.position.x), y: Math.round(n.position.y) })),
        );
      }}
      onPointerMove={(e) => pointed(e.clientX, e.clientY)}
      onPointerLeave={() => connection.awareness.setLocalStateField("pointer", null)}
      onDragOver={(e) => {
        e.preventDefault();
        e.dataTransfer.dropEffect = "move";
      }}
      onDrop={(e) => {
        const key = e.dataTransfer.getData(DRAGGED);
        const kind = entries(kinds.values()).find((k) => k.key === key);
        if (!kind) return;
        const at = flow.screenToFlowPosition({ x: e.clientX, y: e.clientY });
        select(shared.add(kind, Math.round(at.x), Math.round(at.y)));
      }}
      deleteKeyCode={["Delete", "Backspace"]}
      onlyRenderVisibleElements={nodes.length > 100}
      colorMode={scheme}
      fitView
      fitViewOptions={{ maxZoom: 1 }}
      proOptions={{ hideAttribution: true }}
    >
      <Background />
      <CommentLayer />
      <Controls />
      {nodes.length > 12 && <MiniMap pannable zoomable />}
      <ViewportPortal>
        {others.map(
          (p, i) =>
            p.pointer && (
              <div
                key={i}
                className="pointer"
                style={{ transform: `translate(${p.pointer.x}px, ${p.pointer.y}px)` }}
              >
                <span style={{ background: p.person.color }}>➤ {p.person.name}</span>
              </div>
            ),
        )}
      </ViewportPortal>
    </ReactFlow>
  );
}

/** What an operator's node shows of the document; figures of a run it takes itself. */
function useNodeData(others: Other[]): (operator: Operator) => OperatorData {
  const { shared, kinds, checked } = useDocument();
  const { edges } = useSnapshot(shared);
  return useCallback(
    (operator) => {
      const kind = kinds.get(operator.op);
      return {
        operator,
        kind,
        ports: portsOf(kind, edges, operator.id),
        problem: checked.problems.find((p) => p.operator === operator.name),
        people: others.filter((o) => o.selected === operator.id).map((o) => o.person),
      };
    },
    [kinds, checked, edges, others],
  );
}

function sameData(a: OperatorData, b: OperatorData): boolean {
  return (Object.keys(a) as (keyof OperatorData)[]).every(
    (key) =>
      a[key] === b[key] ||
      ((key === "people" || key === "problem") && JSON.stringify(a[key]) === JSON.stringify(b[key])),
  );
}

/** How many ports to draw: those that must be there, and for any number one more than are connected. */
function portsOf(kind: OperatorKind | undefined, edges: Edge[], id: string): number {
  const last = Math.max(-1, ...edges.filter((e) => e.target === id).map((e) => e.port));
  if (!kind) return last + 1;
  return kind.ports.most ?? Math.max(kind.ports.least, last + 2);
}

/** Calls at most once in so many milliseconds, the last call included. */
function useThrottled<A extends unknown[]>(call: (...args: A) => void, wait: number): (...args: A) => void {
  const latest = useRef(call);
  latest.current = call;
  const state = useRef<{ timer?: ReturnType<typeof setTimeout>; args?: A }>({});
  return useCallback(
    (...args: A) => {
      state.current.args = args;
      state.current.timer ??= setTimeout(() => {
        state.current.timer = undefined;
        latest.current(...state.current.args!);
      }, wait);
    },
    [wait],
  );
}
