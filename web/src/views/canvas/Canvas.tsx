import {
  Background,
  Controls,
  type Connection as FlowConnection,
  type Edge as FlowEdge,
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
import { withLive } from "../../model/steering";
import type { OperatorKind, Person } from "../../model/types";
import { type OperatorData, OperatorNode, type OperatorNodeType } from "./OperatorNode";
import { CommentLayer } from "./CommentLayer";
import { DRAGGED } from "../palette/Palette";
import { withProblems } from "./edgeProblems";
import { type Bench, useBench, useSnapshot } from "../../context";
import { changesOf, edgeLooks } from "./edges";

const TYPES = { operator: OperatorNode };

interface Present {
  user: Person;
  selected: string | null;
  pointer: { x: number; y: number } | null;
}

export function Canvas() {
  const bench = useBench();
  const { shared, kinds, select, selected, tell, connection } = bench;
  const snapshot = useSnapshot(shared);
  const present = usePresence();
  const [nodes, setNodes] = useState<OperatorNodeType[]>([]);
  const shown = useRef(nodes); // several changes may come before the next drawing
  shown.current = nodes;
  const flow = useReactFlow();
  const scheme = useComputedColorScheme("light");
  const copied = useRef<Copied | null>(null);
  const dragging = useRef(new Set<string>());
  const data = useNodeData(bench, present);

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

  const edges = useMemo<FlowEdge[]>(() => {
    const look = edgeLooks(bench, snapshot.operators, snapshot.edges);
    return snapshot.edges.map((e) => ({
      id: e.id,
      source: e.source,
      target: e.target,
      targetHandle: `in-${e.port}`,
      sourceHandle: "out",
      ...look(e),
    }));
  }, [snapshot, bench.execution, bench.moment, bench.scope]);
  const [chosenEdges, setChosenEdges] = useState(new Set<string>());

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
      if (key === "z") event.shiftKey ? shared.undo.redo() : shared.undo.undo();
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
      edges={withProblems(edges, snapshot.operators, bench.checked.problems).map((e) =>
        chosenEdges.has(e.id) ? { ...e, selected: true } : e,
      )}
      nodeTypes={TYPES}
      onNodesChange={changeNodes}
      onEdgesChange={changeEdges}
      onEdgeClick={(_, clicked) => bench.setEdge(clicked.id)}
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
        {present.map(
          (p, i) =>
            p.pointer && (
              <div
                key={i}
                className="pointer"
                style={{ transform: `translate(${p.pointer.x}px, ${p.pointer.y}px)` }}
              >
                <span style={{ background: p.user.color }}>➤ {p.user.name}</span>
              </div>
            ),
        )}
      </ViewportPortal>
    </ReactFlow>
  );
}

/** What an operator's node shows: problems, people, and counters of the run or of the moment that is looked at. */
function useNodeData(bench: Bench, present: Present[]) {
  const { shared, kinds, checked, execution, moment, scope } = bench;
  const { edges } = useSnapshot(shared);
  const counted = useMemo(() => withLive(execution), [execution]);
  return useCallback(
    (operator: Operator): OperatorData => {
      const kind = kinds.get(operator.op);
      const counters = counted.get(operator.name);
      const then = moment?.counters[operator.name];
      const failed = execution?.error?.operator === operator.name ? execution.error : null;
      return {
        operator,
        kind,
        ports: portsOf(kind, edges, operator.id),
        problem:
          checked.problems.find((p) => p.operator === operator.name) ??
          (failed ? { ...failed, field: null, operator: operator.name } : undefined),
        taken: then ? then.taken.reduce((a, b) => a + b, 0) : moment ? 0 : (counters?.taken ?? null),
        given: then ? then.given : moment ? 0 : (counters?.given ?? null),
        rejected: execution?.progress?.rejected[operator.name] ?? 0,
        stepped: moment?.last?.operator === operator.name,
        lit: scope?.operators.includes(operator.name) ?? false,
        changes: moment ? changesOf(moment, operator.name) : null,
        held: execution?.held.find((h) => h.operator === operator.name)?.error ?? null,
        people: present.filter((p) => p.selected === operator.id).map((p) => p.user),
      };
    },
    [kinds, checked, execution, counted, moment, scope, edges, present],
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

function usePresence(): Present[] {
  const { connection } = useBench();
  const [present, setPresent] = useState<Present[]>([]);
  useEffect(() => {
    const look = (): void => {
      const states = [...connection.awareness.getStates().entries()];
      const others = states.filter(([client, s]) => client !== connection.awareness.clientID && s.user);
      setPresent(
        others.map(([, s]) => ({
          user: s.user as Person,
          selected: (s.selected ?? null) as string | null,
          pointer: s.pointer ?? null,
        })),
      );
    };
    look();
    connection.awareness.on("change", look);
    return () => connection.awareness.off("change", look);
  }, [connection]);
  return present;
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
