import { useOnViewportChange, useReactFlow } from "@xyflow/react";
import { useEffect } from "react";

import type { Place } from "../../model/types";
import { useDocument, useJourney } from "../context";

interface View {
  x: number;
  y: number;
  zoom: number;
}

/** Tells others what is looked at here; and while somebody is followed, looks at what they look at. */
export function Following() {
  const { connection, following, follow, select } = useDocument();
  const journey = useJourney();
  const flow = useReactFlow();
  useOnViewportChange({ onEnd: (view) => connection.awareness.setLocalStateField("view", view) });
  useEffect(() => {
    if (following === null) return;
    let before: { place?: string; selected?: string | null; view?: string } = {};
    const look = (): void => {
      const state = connection.awareness.getStates().get(following);
      if (state === undefined) return follow(null); // they have left
      const place = (state.place ?? null) as Place | null;
      const view = (state.view ?? null) as View | null;
      const now = {
        place: JSON.stringify(place),
        selected: (state.selected ?? null) as string | null,
        view: JSON.stringify(view),
      };
      if (now.selected !== before.selected && now.selected !== null) select(now.selected);
      if (now.view !== before.view && view) void flow.setViewport(view);
      if (now.place !== before.place) {
        if (place) journey.visit({ run: place.run, moment: place.moment });
        else if (before.place !== undefined) journey.leave();
      }
      before = now;
    };
    look();
    connection.awareness.on("change", look);
    return () => connection.awareness.off("change", look);
  }, [connection, following, follow, select, journey, flow]);
  return null;
}
