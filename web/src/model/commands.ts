/** Commands: everything that can be done by name from the command palette. Searching them is pure. */

export interface Command {
  title: string;
  /** The keys that do the same, for the list. */
  keys?: string;
  /** More words to find it by. */
  words?: string;
  run: () => void;
}

/** Commands that have every word (or its beginning letters in order), best first: titles that start with it come first. */
export function find(commands: Command[], query: string, most = 60): Command[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return commands
    .map((command, place) => ({ command, place, score: score(command, words) }))
    .filter((found) => found.score > 0)
    .sort((a, b) => b.score - a.score || a.place - b.place)
    .slice(0, most)
    .map((found) => found.command);
}

function score(command: Command, words: string[]): number {
  if (words.length === 0) return 1;
  const title = command.title.toLowerCase();
  const text = `${title} ${command.words?.toLowerCase() ?? ""}`;
  if (!words.every((word) => text.includes(word))) return 0;
  if (title.startsWith(words.join(" "))) return 4;
  if (words.every((word) => title.split(/\W+/).some((part) => part.startsWith(word)))) return 3;
  return words.every((word) => title.includes(word)) ? 2 : 1;
}

/** Whether a key was pressed where people type text, so that single letters are no shortcuts there. */
export function typing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.closest("input, textarea, select, [contenteditable], .cm-editor") !== null
  );
}
