import { Button, Group, Text, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";

import { travel } from "../../model/journey";
import type { Moment, Note } from "../../model/types";
import { ago } from "../../model/values";
import { useDocument, useKnown } from "../context";

/** The notes of a run, as everybody sees them now. */
export function useNotes(run: string): Note[] {
  const { api } = useDocument();
  const [notes, setNotes] = useState<Note[]>([]);
  const news = useKnown((known) => known.noted[run] ?? 0);
  useEffect(() => {
    let current = true;
    travel.notebook(api, run).then(
      (all) => current && setNotes(all.filter((entry) => entry.kind === "note")),
      () => undefined,
    );
    return () => {
      current = false;
    };
  }, [api, run, news]);
  return notes;
}

/** Notes pinned to moments: read one and go there, write one here. */
export function Notes({
  run,
  moment,
  notes,
  open,
}: {
  run: string;
  moment: Moment | null;
  notes: Note[];
  open: (note: Note) => void;
}) {
  const { api, person, tell } = useDocument();
  const [text, setText] = useState("");
  return (
    <div>
      <h4>Notes</h4>
      {moment && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (text.trim())
              travel.pin(api, run, person.name, moment.moment, text).then(() => setText(""), tell);
          }}
        >
          <Group gap={6} mb={4}>
            <TextInput
              size="xs"
              w={180}
              aria-label="Note"
              placeholder="a note on this moment"
              value={text}
              onChange={(e) => setText(e.currentTarget.value)}
            />
            <Button size="compact-xs" variant="light" type="submit" disabled={!text.trim()}>
              Pin
            </Button>
          </Group>
        </form>
      )}
      {notes.length === 0 && (
        <Text size="xs" c="dimmed">
          none on this run
        </Text>
      )}
      {notes.map((note) => (
        <div key={note.id}>
          ✎{" "}
          <button type="button" className="plain" onClick={() => open(note)}>
            {note.text}
          </button>{" "}
          <Text span size="xs" c="dimmed">
            {note.by}, epoch {note.epoch}, {ago(note.at)}
          </Text>{" "}
          <button
            type="button"
            className="plain"
            aria-label={`Remove the note ${note.text}`}
            onClick={() => void travel.unpin(api, run, note.id).catch(tell)}
          >
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
