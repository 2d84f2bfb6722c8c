import { useCallback, useEffect, useMemo, useState } from "react";

import { type How, type Where } from "../../model/api";
import { typing } from "../../model/commands";
import { link } from "../../model/journey";
import type { Moment, Place, Recording } from "../../model/types";
import { useDocument, useJourney, useTravelled } from "../context";

export const STEPS: { how: How; label: string; key: string; letter: string }[] = [
  { how: "back", label: "Back", key: "Shift+F10", letter: "b" },
  { how: "over", label: "Over", key: "F10", letter: "o" },
  { how: "into", label: "Into", key: "F11", letter: "i" },
  { how: "out", label: "Out", key: "Shift+F11", letter: "u" },
];

/** The journey in the past of one run: where it is, the operator whose tuples are stepped, and the ways to go. */
export function useTravel(recording: Recording) {
  const { run } = recording;
  const journey = useJourney();
  const moment = useTravelled((now) => now.moment);
  const busy = useTravelled((now) => now.busy);
  const visiting = useTravelled((now) => now.visiting);
  const { names, operator, choose } = useOperator(recording);
  const jump = useCallback((to: Where) => journey.jump(run, to), [journey, run]);
  const step = useCallback((how: How) => journey.step(run, how, operator), [journey, run, operator]);

  useEffect(() => journey.takeUpVisit(run), [journey, run, visiting]);
  useEffect(() => journey.leave, [journey]); // when the panel closes
  usePlace(run, moment);
  useStepKeys(step);
  return { journey, run, moment, busy, names, operator, choose, jump, step };
}

/** The operator that is stepped: the one selected on the canvas, if the run had it, else the one chosen last. */
function useOperator(recording: Recording) {
  const { shared, selected, select } = useDocument();
  const names = useMemo(
    () => recording.operators.filter((o) => o.inputs.length > 0).map((o) => o.name),
    [recording],
  );
  const name = shared.current().operators.find((o) => o.id === selected)?.name;
  const onCanvas = name !== undefined && names.includes(name) ? name : null;
  const [operator, setOperator] = useState(onCanvas ?? names[0] ?? "");
  const [before, setBefore] = useState(onCanvas);
  if (onCanvas !== before) {
    setBefore(onCanvas);
    if (onCanvas !== null) setOperator(onCanvas);
  }
  const choose = (wanted: string | null): void => {
    if (!wanted) return;
    setOperator(wanted);
    const there = shared.current().operators.find((o) => o.name === wanted);
    if (there) select(there.id);
  };
  return { names, operator, choose };
}

/** The link in the browser's address and the place that others see follow the moment. */
function usePlace(run: string, moment: Moment | null): void {
  const { id, connection } = useDocument();
  useEffect(() => {
    const place: Place | null = moment && { run, moment: moment.moment, epoch: moment.epoch };
    connection.awareness.setLocalStateField("place", place);
    history.replaceState(null, "", moment ? link(id, run, moment.address) : `#/w/${id}`);
  }, [id, connection, run, moment]);
  useEffect(
    () => () => {
      connection.awareness.setLocalStateField("place", null);
      history.replaceState(null, "", `#/w/${id}`);
    },
    [id, connection],
  );
}

/** F10 and its kind step everywhere, single letters where nobody types text. */
function useStepKeys(step: (how: How) => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const name = (event.shiftKey ? "Shift+" : "") + event.key;
      const found = STEPS.find((s) => s.key === name || (!typing(event.target) && s.letter === event.key));
      if (found) {
        event.preventDefault();
        step(found.how);
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [step]);
}
