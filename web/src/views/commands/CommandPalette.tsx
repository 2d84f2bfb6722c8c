import { Modal, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { flushSync } from "react-dom";

import { type Command, find, typing } from "../../model/commands";
import { useDocument } from "../context";
import { focusFields, useCommands } from "./useCommands";

/** Ctrl+K: everything by name. Also the single-letter keys of the canvas. */
export function CommandPalette() {
  const { selected, shared } = useDocument();
  const commands = useCommands();
  const [listed, setListed] = useState<Command[] | null>(null);
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const found = listed === null ? [] : find(listed, query);

  useEffect(() => {
    const open = (): void => {
      setListed(commands());
      setQuery("");
      setAt(0);
    };
    const byKeys = (keys: string): boolean => {
      const command = commands().find((c) => c.keys === keys);
      command?.run();
      return command !== undefined;
    };
    const pressed = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        open();
        return;
      }
      if (
        typing(event.target) ||
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        document.querySelector("[role=dialog]")
      )
        return;
      if (event.key === "F2" || (["e", "a", "f", "c"].includes(event.key) && !event.shiftKey)) {
        if (byKeys(event.key)) event.preventDefault();
      } else if (event.key === "Enter" && event.shiftKey) {
        if (byKeys("Shift+Enter")) event.preventDefault();
      } else if (
        event.key === "Enter" &&
        selected !== null &&
        (event.target as HTMLElement).classList.contains("selected")
      ) {
        event.preventDefault();
        focusFields();
      }
    };
    window.addEventListener("keydown", pressed);
    window.addEventListener("samovar-commands", open);
    return () => {
      window.removeEventListener("keydown", pressed);
      window.removeEventListener("samovar-commands", open);
    };
  }, [commands, selected]);

  useEffect(() => {
    setListed((now) => (now === null ? null : commands())); // what the last command selected, it selected after this was opened
  }, [selected, commands]);

  const close = (): void => setListed(null);
  /** All of it before the next key comes: the dialog goes, so that a command can set the focus, and what it does is in force. */
  const run = (command: Command | undefined): void => {
    flushSync(close);
    shared.undo.stopCapturing(); // two commands are two steps to undo, however fast they come
    if (command) flushSync(command.run);
  };
  return (
    <Modal
      opened={listed !== null}
      onClose={close}
      withCloseButton={false}
      size="lg"
      title="Commands"
      padding="sm"
      transitionProps={{ duration: 0 }}
    >
      <TextInput
        data-autofocus
        aria-label="Command"
        placeholder="What do you want to do?"
        value={query}
        role="combobox"
        aria-expanded
        aria-controls="commands"
        aria-activedescendant={found[at] ? `command-${at}` : undefined}
        onChange={(e) => {
          setQuery(e.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={(e) => {
          if (e.key === "ArrowDown") setAt((n) => Math.min(n + 1, found.length - 1));
          else if (e.key === "ArrowUp") setAt((n) => Math.max(n - 1, 0));
          else if (e.key === "Enter") run(found[at]);
          else return;
          e.preventDefault();
        }}
      />
      <ul className="commands" id="commands" role="listbox" aria-label="Commands">
        {found.map((c, i) => (
          <li
            key={`${i}${c.title}`}
            id={`command-${i}`}
            role="option"
            aria-selected={i === at}
            onClick={() => run(c)}
            ref={(node) => {
              if (i === at) node?.scrollIntoView({ block: "nearest" });
            }}
          >
            {c.title}
            {c.keys && <kbd>{c.keys}</kbd>}
          </li>
        ))}
        {found.length === 0 && <li aria-disabled>No command has these words.</li>}
      </ul>
    </Modal>
  );
}
