import { Text, TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";

import { entries, grouped, search } from "../../model/palette";
import { useAdd } from "./useAdd";
import { useDocument } from "../context";

export const DRAGGED = "application/x-samovar-operator";

/** The operators: click or Enter adds one after the selected operator; drag puts it where it is dropped. */
export function Palette() {
  const { kinds } = useDocument();
  const [query, setQuery] = useState("");
  const add = useAdd();
  const input = useRef<HTMLInputElement>(null);
  const found = search(entries(kinds.values()), query);

  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const typing = (event.target as HTMLElement).closest("input, textarea, [contenteditable]");
      if (event.key === "/" && !typing) {
        event.preventDefault();
        input.current?.focus();
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);

  return (
    <nav className="palette" aria-label="Palette">
      <TextInput
        ref={input}
        size="xs"
        placeholder="Search operators ( / )"
        aria-label="Search operators"
        value={query}
        mb="xs"
        onChange={(e) => setQuery(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key === "Enter" && found[0]) {
            add(found[0]);
            setQuery("");
          }
        }}
      />
      {found.length === 0 && (
        <Text size="sm" c="dimmed">
          No operator has “{query}” in its name or description.
        </Text>
      )}
      {grouped(found).map(([group, members]) => (
        <section key={group} aria-label={group}>
          <Text size="xs" fw={700} c="dimmed" mt={6}>
            {group}
          </Text>
          {members.map((kind) => (
            <button
              key={kind.key}
              type="button"
              className="kind"
              title={kind.description}
              draggable
              data-kind={kind.key}
              onClick={() => add(kind)}
              onDragStart={(e) => e.dataTransfer.setData(DRAGGED, kind.key)}
            >
              {kind.title}
              <small>{kind.summary}</small>
            </button>
          ))}
        </section>
      ))}
    </nav>
  );
}
