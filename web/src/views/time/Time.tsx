import { Button, Group, NumberInput, Select, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { travel } from "../../model/journey";
import type { Note, Recording } from "../../model/types";
import { useOthers } from "../people/useOthers";
import { MomentView } from "./MomentView";
import { Notes, useNotes } from "./Notes";
import { Timeline } from "./Timeline";
import { useDocument } from "../context";
import { STEPS, useTravel } from "./useTravel";

/** The past of a run: where to go, and steps from there. The operator is the one selected on the canvas. */
export default function Time({ recording }: { recording: Recording }) {
  const { api, id, shared, person: self, tell } = useDocument();
  const { journey, run, moment, busy, names, operator, choose, jump, step } = useTravel(recording);
  const { go, leave } = journey;
  const [tuples, setTuples] = useState<number | string>(1);
  const [when, setWhen] = useState("");
  const others = useOthers().flatMap(({ person, place }) => (place?.run === run ? [{ person, place }] : []));
  const notes = useNotes(run);
  const open = (note: Note): void => go(travel.visit(api, run, note.address));
  const share = (): void => {
    void navigator.clipboard.writeText(location.href).then(
      () => tell("The link to this moment was copied."),
      () => tell(`The link to this moment: ${location.href}`),
    );
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
            if (when.trim()) journey.first(run, operator, when);
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
        <Button size="xs" variant="light" disabled={!moment} onClick={leave}>
          Live
        </Button>
        <Button size="xs" variant="light" disabled={!moment} onClick={share}>
          Copy link
        </Button>
        <Button
          size="xs"
          variant="light"
          disabled={busy || !moment}
          onClick={() => journey.fork(recording, shared.current().operators, self.name, id)}
        >
          Fork here
        </Button>
        {recording.failed_epoch !== null && (
          <Button size="xs" color="red" variant="light" disabled={busy} onClick={() => journey.failure(run)}>
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
        live={leave}
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
