/** Travelling in the past of a run: links to moments, the timeline as numbers, and what the server is asked. Pure. */
import type { Api, Where } from "./api";
import type { Address, Json, Lines, Moment, NotebookEntry, Recording, Scope } from "./types";

const e = encodeURIComponent;

/** A place to go to: a run, and in it an address, or a moment that the server knows by its id; neither: the run's end. */
export interface Visit {
  run: string;
  address?: Address;
  moment?: string;
}

export const travel = {
  visit: (api: Api, run: string, address: Address) =>
    api.call<Moment>("POST", `/api/recordings/${e(run)}/visit`, address),
  lastChange: (
    api: Api,
    run: string,
    moment: string,
    what: { operator: string; name: string; key: Json; keyed: boolean },
  ) =>
    api.call<{ found: Moment | null }>(
      "POST",
      `/api/recordings/${e(run)}/moments/${e(moment)}/last_change`,
      what,
    ),
  scope: (
    api: Api,
    run: string,
    moment: string,
    of: { of: "pending" | "taken" | "given"; operator?: string; number?: number },
  ) => api.call<Scope>("POST", `/api/recordings/${e(run)}/moments/${e(moment)}/scope`, of),
  lines: (api: Api, run: string, moment: string, operator: string) =>
    api.call<Lines>("GET", `/api/recordings/${e(run)}/moments/${e(moment)}/lines/${e(operator)}`),
  notebook: (api: Api, run: string) => api.call<NotebookEntry[]>("GET", `/api/recordings/${e(run)}/notebook`),
  pin: (api: Api, run: string, by: string, moment: string, text: string) =>
    api.call<NotebookEntry>("POST", `/api/recordings/${e(run)}/notes`, { by, moment, text }),
  unpin: (api: Api, run: string, note: string) =>
    api.call<void>("DELETE", `/api/recordings/${e(run)}/notes/${e(note)}`),
};

// --- links ----------------------------------------------------------------------------------------------------------

/** The address in the browser of a moment of a run; it means the same to everybody who has the workspace. */
export function link(workflow: string, run: string, address: Address | null): string {
  const where = new URLSearchParams({
    run,
    ...(address ? { at: JSON.stringify([address.to, address.steps]) } : {}),
  });
  return `#/w/${workflow}?${where.toString()}`;
}

export function parseLink(hash: string): Visit | null {
  const query = new URLSearchParams(hash.split("?")[1] ?? "");
  const run = query.get("run");
  if (!run) return null;
  try {
    const read: unknown = JSON.parse(query.get("at") ?? "null");
    if (Array.isArray(read) && read.length === 2 && typeof read[0] === "object" && Array.isArray(read[1])) {
      return { run, address: { to: read[0] as Address["to"], steps: read[1] as Address["steps"] } };
    }
  } catch {
    // not a link of ours: the run alone
  }
  return { run };
}

// --- the timeline ---------------------------------------------------------------------------------------------------

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
