import { useMemo, useRef, useState } from "react";

import type { Where } from "../../model/api";
import { neighbour, shareOf, trackOf, whereAt } from "../../model/timeline";
import type { Moment, Note, Person, Place, Recording } from "../../model/types";

const NAMED = 60;

interface Props {
  recording: Recording;
  moment: Moment | null;
  operator: string;
  notes: Note[];
  others: { person: Person; place: Place }[];
  jump: (to: Where) => void;
  live: () => void;
  open: (note: Note) => void;
}

/** The run as a line: epochs as long as they took, marked moments, notes, people. Drag it, or use the arrow keys. */
export function Timeline({ recording, moment, operator, notes, others, jump, live, open }: Props) {
  const track = useMemo(() => trackOf(recording), [recording]);
  const line = useRef<HTMLDivElement>(null);
  const [dragged, setDragged] = useState<number | null>(null);
  const share = dragged ?? (moment ? shareOf(track, moment, operator) : 1);
  const at = (event: React.PointerEvent): number => {
    const box = line.current!.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  };
  const pressed = (event: React.KeyboardEvent): void => {
    if (event.key === "ArrowLeft") jump(neighbour(track, moment, -1));
    else if (event.key === "ArrowRight") {
      if (moment) jump(neighbour(track, moment, 1));
    } else if (event.key === "Home") jump({ epoch: 0 });
    else if (event.key === "End") live();
    else return;
    event.preventDefault();
  };
  const epochAt = (epoch: number): number => track.epochs.find((e) => e.epoch === epoch)?.from ?? 1;
  const whole = track.epochs.length;
  const told = moment ? `epoch ${moment.epoch} of ${whole}` : "now";
  return (
    <div
      ref={line}
      className="timeline"
      role="slider"
      tabIndex={0}
      aria-label="Timeline"
      aria-valuemin={0}
      aria-valuemax={whole}
      aria-valuenow={moment ? moment.epoch : whole}
      aria-valuetext={told}
      onKeyDown={pressed}
      onPointerDown={(event) => {
        if ((event.target as HTMLElement).closest(".mark")) return;
        line.current!.setPointerCapture(event.pointerId);
        setDragged(at(event));
      }}
      onPointerMove={(event) => dragged !== null && setDragged(at(event))}
      onPointerUp={(event) => {
        if (dragged === null) return;
        setDragged(null);
        jump(whereAt(track, at(event), operator));
      }}
      onPointerCancel={() => setDragged(null)}
    >
      {track.epochs.map((epoch) => (
        <div
          key={epoch.epoch}
          className={`epoch${moment?.epoch === epoch.epoch ? " now" : ""}`}
          title={`epoch ${epoch.epoch}`}
          style={{ left: `${100 * epoch.from}%`, width: `${100 * (epoch.to - epoch.from)}%` }}
        >
          {whole <= NAMED ? epoch.epoch : ""}
        </div>
      ))}
      <div className="cursor" style={{ left: `${100 * share}%` }} />
      {recording.interactions.map((i) => (
        <button
          key={i.id}
          type="button"
          tabIndex={-1}
          className="mark"
          title={`${i.id}: ${i.operator} ${i.note ?? ""}`}
          aria-label={`Marked moment ${i.id}`}
          style={{ left: `${100 * epochAt(i.epoch)}%` }}
          onClick={() => jump({ interaction: i.id })}
        >
          ◆
        </button>
      ))}
      {notes.map((note) => (
        <button
          key={note.id}
          type="button"
          tabIndex={-1}
          className="mark"
          title={`${note.by}: ${note.text}`}
          aria-label={`Note of ${note.by}`}
          style={{ left: `${100 * epochAt(note.epoch) + 1}%` }}
          onClick={() => open(note)}
        >
          ✎
        </button>
      ))}
      {others.map(({ person, place }, i) => (
        <span
          key={i}
          className="mark below"
          style={{ left: `${100 * epochAt(place.epoch)}%`, color: person.color }}
          title={person.name}
        >
          ▲
        </span>
      ))}
    </div>
  );
}
