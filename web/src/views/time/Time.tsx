import { Button, Group, NumberInput, Select, Text, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";

import type { How, Where } from "../../model/api";
import { link, travel } from "../../model/journey";
import type { Moment, Person, Place, Recording } from "../../model/types";
import { MomentView } from "./MomentView";
import { type Note, Notes, useNotes } from "./Notes";
import { Timeline } from "./Timeline";
import { useBench } from "../../context";

const STEPS: { how: How; label: string; key: string; letter: string }[] = [
  { how: "back", label: "Back", key: "Shift+F10", letter: "b" },
  { how: "over", label: "Over", key: "F10", letter: "o" },
  { how: "into", label: "Into", key: "F11", letter: "i" },
  { how: "out", label: "Out", key: "Shift+F11", letter: "u" },
];

/** The past of a run: where to go, and steps from there. The operator is the one selected on the canvas. */
export default function Time({ recording }: { recording: Recording }) {
  const bench = useBench();
  const { api, id, shared, connection, selected, select, moment, setMoment, tell, person, visiting, visit } =
    bench;
  const run = recording.run;
  const names = recording.operators.filter((o) => o.inputs.length > 0).map((o) => o.name);
  const chosen = shared.current().operators.find((o) => o.id === selected)?.name;
  const [operator, setOperator] = useState(chosen && names.includes(chosen) ? chosen : (names[0] ?? ""));
  const [tuples, setTuples] = useState<number | string>(1);
  const [when, setWhen] = useState("");
  const [busy, setBusy] = useState(false);

  useEffect(() => {
    if (chosen && names.includes(chosen)) setOperator(chosen);
  }, [chosen]);
  useEffect(() => () => setMoment(null), [setMoment]);
  useEffect(() => {
    const place: Place | null = moment && { run, moment: moment.moment, epoch: moment.epoch };
    connection.awareness.setLocalStateField("place", place);
  }, [connection, run, moment]);
  const others = usePlaces(run);
  const notes = useNotes(run);
  useEffect(() => {
    history.replaceState(null, "", moment ? link(id, run, moment.address) : `#/w/${id}`);
  }, [id, run, moment]);
  useEffect(() => () => history.replaceState(null, "", `#/w/${id}`), [id]);
  useEffect(() => {
    if (visiting?.run !== run) return;
    visit(null);
    if (visiting.address) go(travel.visit(api, run, visiting.address));
    else if (visiting.moment) go(api.moment(run, visiting.moment));
  }, [visiting, run]);
  const open = (note: Note): void => go(travel.visit(api, run, note.address));
  const share = (): void => {
    void navigator.clipboard.writeText(location.href).then(
      () => tell("The link to this moment was copied."),
      () => tell(`The link to this moment: ${location.href}`),
    );
  };

  const go = (asked: Promise<Moment | null>): void => {
    setBusy(true);
    asked
      .then((found) => {
        if (found) setMoment(found);
        else tell("That never happened in this run.");
      }, tell)
      .finally(() => setBusy(false));
  };
  const jump = (to: Where): void => go(api.jump(run, to));
  const step = (how: How): void => {
    if (moment && !busy)
      go(api.step(run, moment.moment, how, how === "over" || how === "into" ? operator : undefined));
  };
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const typing = (event.target as HTMLElement).closest("input, textarea, [contenteditable]");
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const name = (event.shiftKey ? "Shift+" : "") + event.key;
      const found = STEPS.find((s) => s.key === name || (!typing && s.letter === event.key));
      if (found) {
        event.preventDefault();
        step(found.how);
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  });
  const choose = (name: string | null): void => {
    if (!name) return;
    setOperator(name);
    const on = shared.current().operators.find((o) => o.name === name);
    if (on) select(on.id);
  };
  const fork = (): void => {
    if (!moment) return;
    const changed = shared
      .current()
      .operators.filter(
        (o) =>
          names.includes(o.name) &&
          typeof o.fields.code === "string" &&
          o.fields.code !== recording.code[o.name],
      );
    const changes = Object.fromEntries(changed.map((o) => [o.name, String(o.fields.code)]));
    api.fork(run, moment.moment, changes, person.name, id).then(() => setMoment(null), tell);
  };

  return (
    <div>
      <Group gap="xs" align="end">
        <Select
          size="xs"
          w={130}
          label="operator"
          data={names}
          value={operator}
          onChange={choose}
          allowDeselect={false}
        />
        <NumberInput size="xs" w={90} label="tuples" min={0} value={tuples} onChange={setTuples} />
        <Button size="xs" disabled={busy} onClick={() => jump({ operator, tuples: Number(tuples) || 0 })}>
          Jump
        </Button>
        <form
          onSubmit={(e) => {
            e.preventDefault();
            if (when.trim()) go(api.first(run, operator, when).then((answer) => answer.found));
          }}
        >
          <TextInput
            size="xs"
            w={220}
            label="when"
            placeholder="'Bob' in blacklist"
            value={when}
            onChange={(e) => setWhen(e.currentTarget.value)}
          />
        </form>
        {STEPS.map((s) => (
          <Button
            key={s.how}
            size="xs"
            variant="default"
            disabled={busy || !moment}
            title={`${s.key} or ${s.letter}`}
            onClick={() => step(s.how)}
          >
            {s.label}
          </Button>
        ))}
        <Button size="xs" variant="light" disabled={!moment} onClick={() => setMoment(null)}>
          Live
        </Button>
        <Button size="xs" variant="light" disabled={!moment} onClick={share}>
          Copy link
        </Button>
        <Button size="xs" variant="light" disabled={busy || !moment} onClick={fork}>
          Fork here
        </Button>
        {recording.failed_epoch !== null && (
          <Button
            size="xs"
            color="red"
            variant="light"
            disabled={busy}
            onClick={() => go(api.failure(run).then((a) => a.found))}
          >
            Failure
          </Button>
        )}
      </Group>
      <Timeline
        recording={recording}
        moment={moment}
        operator={operator}
        notes={notes}
        others={others}
        jump={jump}
        live={() => setMoment(null)}
        open={open}
      />
      {others.map(({ person: other, place }, i) => (
        <Button
          key={i}
          size="compact-xs"
          variant="light"
          mr={6}
          onClick={() => go(api.moment(run, place.moment))}
        >
          {other.name} is in epoch {place.epoch}: go there
        </Button>
      ))}
      {moment ? (
        <MomentView
          run={run}
          moment={moment}
          operator={operator}
          python={typeof recording.code[operator] === "string"}
          go={go}
          aside={<Notes run={run} moment={moment} notes={notes} open={open} />}
        />
      ) : (
        <>
          <Text size="sm" c="dimmed">
            Drag the line, or go to a number of tuples of an operator; then step from there.
          </Text>
          {notes.length > 0 && <Notes run={run} moment={null} notes={notes} open={open} />}
        </>
      )}
    </div>
  );
}

/** Where the others are in the past of this run. */
function usePlaces(run: string): { person: Person; place: Place }[] {
  const { connection } = useBench();
  const [places, setPlaces] = useState<{ person: Person; place: Place }[]>([]);
  useEffect(() => {
    const look = (): void => {
      const states = [...connection.awareness.getStates().entries()];
      const there = states.filter(
        ([client, s]) =>
          client !== connection.awareness.clientID && s.user && (s.place as Place | null)?.run === run,
      );
      setPlaces(there.map(([, s]) => ({ person: s.user as Person, place: s.place as Place })));
    };
    look();
    connection.awareness.on("change", look);
    return () => connection.awareness.off("change", look);
  }, [connection, run]);
  return places;
}
