/** The run as a line from 0 to 1: where a place on it leads to, and where a moment stands on it. Pure. */
import type { Where } from "./api";
import type { Moment, Recording } from "./types";

/** A run as a line from 0 to 1: each epoch as long as it took, and the tuples an operator had processed at its start. */
export interface Track {
  epochs: {
    epoch: number;
    from: number;
    to: number;
    before: Record<string, number>;
    taken: Record<string, number>;
  }[];
  total: number;
}

export function trackOf(recording: Pick<Recording, "epoch_list">): Track {
  const seconds = recording.epoch_list.map((epoch) => Math.max(epoch.seconds, 1e-3));
  const total = seconds.reduce((a, b) => a + b, 0);
  const sums: Record<string, number> = {};
  let at = 0;
  const epochs = recording.epoch_list.map((epoch, i) => {
    const made = {
      epoch: epoch.epoch,
      from: at / total,
      to: (at + seconds[i]!) / total,
      before: { ...sums },
      taken: epoch.taken,
    };
    at += seconds[i]!;
    for (const [name, taken] of Object.entries(epoch.taken)) sums[name] = (sums[name] ?? 0) + taken;
    return made;
  });
  return { epochs, total };
}

/** Where a place on the line leads: to so many tuples of an operator, or where it has none, to the epoch. */
export function whereAt(track: Track, share: number, operator: string): Where {
  const last = track.epochs[track.epochs.length - 1];
  if (last === undefined || share >= 1) return {};
  const epoch = track.epochs.find((one) => share < one.to) ?? last;
  const inside = Math.max(0, (share - epoch.from) / (epoch.to - epoch.from));
  const taken = epoch.taken[operator] ?? 0;
  const tuples = Math.round(inside * taken);
  if (taken === 0 || tuples === 0) return { epoch: epoch.epoch };
  return { operator, tuples: (epoch.before[operator] ?? 0) + tuples };
}

/** The place of a moment on the line, by the tuples that an operator had processed. */
export function shareOf(track: Track, moment: Moment, operator: string): number {
  const epoch = track.epochs.find((one) => one.epoch === moment.epoch);
  if (epoch === undefined) return moment.epoch <= 0 ? 0 : 1;
  const done =
    (moment.counters[operator]?.taken ?? []).reduce((a, b) => a + b, 0) - (epoch.before[operator] ?? 0);
  const taken = epoch.taken[operator] ?? 0;
  const inside = taken > 0 ? Math.min(1, Math.max(0, done / taken)) : 0;
  return epoch.from + inside * (epoch.to - epoch.from);
}

/** The epoch to go to by an arrow key; undefined: the end of the run. */
export function neighbour(track: Track, moment: Moment | null, way: 1 | -1): Where {
  const count = track.epochs.length;
  const at = moment === null ? count : moment.epoch;
  const to = Math.max(0, at + way);
  return to >= count ? {} : { epoch: to };
}
