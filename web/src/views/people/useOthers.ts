import { useEffect, useState } from "react";

import type { Person, Place } from "../../model/types";
import { useDocument } from "../context";

/** Somebody else at this workflow: what they have selected, where they point, and where they are in the past. */
export interface Other {
  client: number;
  person: Person;
  selected: string | null;
  pointer: { x: number; y: number } | null;
  place: Place | null;
}

/** The others who are at this workflow now, as they tell by the connection. */
export function useOthers(): Other[] {
  const { awareness } = useDocument().connection;
  const [others, setOthers] = useState<Other[]>([]);
  useEffect(() => {
    const look = (): void => {
      const states = [...awareness.getStates().entries()];
      setOthers(
        states
          .filter(([client, state]) => client !== awareness.clientID && state.user)
          .map(([client, { user, selected = null, pointer = null, place = null }]) => {
            return { client, person: user, selected, pointer, place } as Other;
          }),
      );
    };
    look();
    awareness.on("change", look);
    return () => awareness.off("change", look);
  }, [awareness]);
  return others;
}
