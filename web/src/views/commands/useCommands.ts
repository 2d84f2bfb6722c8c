import { useMantineColorScheme } from "@mantine/core";
import { useReactFlow } from "@xyflow/react";
import { useCallback } from "react";

import { type Form, exportLink, runTo } from "../../model/build";
import type { Command } from "../../model/commands";
import { isActive } from "../../model/executions";
import { arrange } from "../../model/layout";
import { entries } from "../../model/palette";
import { steer } from "../../model/steering";
import type { Execution } from "../../model/types";
import { useAdd } from "../palette/useAdd";
import { useDocument, useExecutions, useJourney } from "../context";
import { commentsOf } from "../../model/comments";

/** All commands as they are now: what can be done with the workflow, with the selected operator, and places to go to. */
export function useCommands(): () => Command[] {
  const { api, id, shared, connection, kinds, selected, select, person, tell, checked } = useDocument();
  const executions = useExecutions();
  const { leave } = useJourney();
  const flow = useReactFlow();
  const add = useAdd();
  const { toggleColorScheme } = useMantineColorScheme();

  return useCallback(() => {
    const { operators, edges } = shared.current();
    const execution = executions.current().latest;
    const chosen = operators.find((o) => o.id === selected);
    const centre = (): { x: number; y: number } => {
      const box = document.querySelector(".canvas")!.getBoundingClientRect();
      return flow.screenToFlowPosition({ x: box.left + box.width / 3, y: box.top + box.height / 3 });
    };
    const save = (form: Form): void => {
      const link = Object.assign(document.createElement("a"), exportLink(id, form));
      connection.flush().then(() => link.click(), tell);
    };
    const about: Command[] = [];
    if (chosen) {
      const on = chosen.fields.enabled !== false;
      about.push(
        {
          title: `Run to ${chosen.name}`,
          keys: "Shift+Enter",
          words: "up to here part",
          run: () => toHere(chosen.name),
        },
        {
          title: `${on ? "Disable" : "Enable"} ${chosen.name}`,
          keys: "e",
          words: "turn off on skip",
          run: () => shared.setField(chosen.id, "enabled", on ? false : undefined),
        },
        {
          title: `Duplicate ${chosen.name}`,
          keys: "Ctrl+D",
          words: "copy",
          run: () => select(shared.paste(shared.copy([chosen.id]))[0] ?? null),
        },
        {
          title: `Rename ${chosen.name}`,
          keys: "F2",
          run: () => document.querySelector<HTMLElement>(".properties input")?.focus(),
        },
        { title: `Edit ${chosen.name}`, keys: "Enter", words: "fields properties", run: () => focusFields() },
        {
          title: `Remove ${chosen.name}`,
          keys: "Del",
          words: "delete",
          run: () => {
            shared.remove([chosen.id]);
            select(null);
          },
        },
      );
      for (const other of operators) {
        const kind = kinds.get(other.op);
        const port = kind ? shared.freePort(other.id, kind.ports.most) : null;
        if (port === null || !kinds.get(chosen.op)?.output || shared.whyNot(chosen.id, other.id) !== null)
          continue;
        about.push({
          title: `Connect ${chosen.name} to ${other.name}${kind?.ports.most === 1 ? "" : ` (port ${port})`}`,
          words: "edge link",
          run: () => void shared.connect(chosen.id, other.id, port),
        });
      }
      for (const edge of edges.filter((e) => e.target === chosen.id || e.source === chosen.id)) {
        const name = (of: string): string => operators.find((o) => o.id === of)?.name ?? "";
        about.push({
          title: `Disconnect ${name(edge.source)} from ${name(edge.target)}`,
          words: "edge remove",
          run: () => shared.disconnect([edge.id]),
        });
      }
    }
    function toHere(name: string): void {
      leave();
      connection
        .flush()
        .then(() => runTo(api, id, name, person.name))
        .catch(tell);
    }
    const general: Command[] = [
      ...(execution !== null && isActive(execution)
        ? steering(execution)
        : [{ title: "Run", keys: "Ctrl+Enter", words: "start execute", run: () => press("Enter") }]),
      ...panels(),
      { title: "Undo", keys: "Ctrl+Z", run: () => void shared.undo.undo() },
      { title: "Redo", keys: "Ctrl+Shift+Z", run: () => void shared.undo.redo() },
      {
        title: "Arrange",
        keys: "a",
        words: "layout tidy",
        run: () => {
          shared.move(arrange(operators, edges));
          setTimeout(() => void flow.fitView({ maxZoom: 1, duration: 200 }), 50);
        },
      },
      {
        title: "Fit all on the screen",
        keys: "f",
        words: "zoom view",
        run: () => void flow.fitView({ maxZoom: 1, duration: 200 }),
      },
      {
        title: "Add a comment",
        keys: "c",
        words: "note text",
        run: () => {
          const at = centre();
          commentsOf(shared).add(Math.round(at.x), Math.round(at.y));
        },
      },
      { title: "Export as YAML", words: "download save document", run: () => save("yaml") },
      { title: "Export as JSON", words: "download save document", run: () => save("json") },
      { title: "Export as Python", words: "download save program code", run: () => save("python") },
      { title: "Light or dark", words: "mode colour theme", run: () => toggleColorScheme() },
      {
        title: "Keys",
        keys: "?",
        words: "shortcuts help",
        run: () => window.dispatchEvent(new KeyboardEvent("keydown", { key: "?" })),
      },
      {
        title: "Show the tour",
        words: "help first steps",
        run: () => window.dispatchEvent(new Event("samovar-tour")),
      },
      {
        title: "All workflows",
        words: "home workspace",
        run: () => {
          location.hash = "#/";
        },
      },
    ];
    function steering(now: Execution): Command[] {
      const paused = ["paused", "pausing"].includes(now.status);
      const held = [...document.querySelectorAll<HTMLElement>(".operator .held")];
      return [
        paused
          ? {
              title: "Resume",
              words: "go on continue",
              run: () => void steer.resume(api, now.execution, person.name).catch(tell),
            }
          : {
              title: "Pause",
              words: "halt wait",
              run: () => void steer.pause(api, now.execution, person.name).catch(tell),
            },
        {
          title: "Stop",
          words: "end cancel",
          run: () => void api.stop(now.execution, person.name).catch(tell),
        },
        ...held.map((badge) => ({
          title: `Decide on the tuple ${(badge.textContent ?? "").replace("✋ Held", "held").replace(/:.*/, "")}`,
          words: "error fix retry skip",
          run: () => badge.click(),
        })),
      ];
    }
    const wrong: Command[] = checked.problems.flatMap((p) => {
      const at = operators.find((o) => o.name === p.operator);
      return at
        ? [
            {
              title: `Problem: ${at.name}: ${p.message}`.slice(0, 110),
              words: "error mistake",
              run: () => go(at.id),
            },
          ]
        : [];
    });
    function go(to: string): void {
      select(to);
      void flow.fitView({ nodes: [{ id: to }], maxZoom: 1, duration: 200 });
    }
    const places = operators.map((o) => ({ title: `Go to ${o.name}`, words: o.op, run: () => go(o.id) }));
    const additions = entries(kinds.values()).map((kind) => ({
      title: `Add ${kind.title}`,
      words: `${kind.op} ${kind.group} ${kind.summary}`,
      run: () => add(kind),
    }));
    return [...about, ...general, ...wrong, ...places, ...additions];
  }, [
    shared,
    selected,
    select,
    kinds,
    flow,
    add,
    id,
    api,
    connection,
    executions,
    leave,
    person,
    tell,
    checked,
    toggleColorScheme,
  ]);
}

/** The panels below the canvas, by the names on their tabs. */
function panels(): Command[] {
  return [...document.querySelectorAll<HTMLElement>(".below [role=tab]")].map((tab) => ({
    title: `Show ${(tab.textContent ?? "").replace(/ \(\d+\)$/, "")}`,
    words: "panel below open",
    run: () => {
      tab.click();
      tab.focus();
    },
  }));
}

function press(key: string): void {
  window.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey: true }));
}

/** Puts the cursor into the first field of the selected operator after its name; into that, while an editor is being loaded. */
export function focusFields(frames = 120): void {
  const found = document.querySelectorAll<HTMLElement>(
    ".properties input, .properties textarea, .properties .cm-content",
  );
  (found[1] ?? found[0])?.focus();
  if (found.length < 2 && frames > 0) {
    requestAnimationFrame(() => {
      if (document.activeElement === (found[0] ?? document.body)) focusFields(frames - 1);
    });
  }
}
