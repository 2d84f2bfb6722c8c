import { Button, Menu } from "@mantine/core";
import { useState } from "react";

import { isActive } from "../../model/executions";
import { type OnError, keepOnError, onError, steer } from "../../model/steering";
import { useDocument, useExecution } from "../context";

/** Pause and resume, for everybody at once; and before a run, what happens at a tuple that raises. */
export function Steering() {
  const { api, person, tell } = useDocument();
  const id = useExecution((e) => e?.execution ?? "");
  const status = useExecution((e) => e?.status);
  const active = useExecution(isActive);
  const [busy, setBusy] = useState(false);
  if (status === undefined || !active) return <AtAnError />;
  const ask = (asked: Promise<unknown>): void => {
    setBusy(true);
    asked.catch(tell).finally(() => setBusy(false));
  };
  if (["paused", "pausing"].includes(status)) {
    return (
      <Button size="xs" disabled={busy} onClick={() => ask(steer.resume(api, id, person.name))}>
        ▶ Resume
      </Button>
    );
  }
  return (
    <Button
      size="xs"
      variant="light"
      disabled={busy || !["running", "holding"].includes(status)}
      onClick={() => ask(steer.pause(api, id, person.name))}
    >
      ⏸ Pause
    </Button>
  );
}

function AtAnError() {
  const [chosen, setChosen] = useState<OnError>(() => onError(localStorage));
  const choose = (what: OnError) => () => setChosen(keepOnError(localStorage, what));
  return (
    <Menu>
      <Menu.Target>
        <Button size="xs" px={6} variant="light" aria-label="How to run">
          ▾
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>A tuple that a Python operator raises on</Menu.Label>
        <Menu.Item role="menuitemradio" aria-checked={chosen === "hold"} onClick={choose("hold")}>
          {chosen === "hold" ? "● " : "○ "}waits for a decision
        </Menu.Item>
        <Menu.Item role="menuitemradio" aria-checked={chosen === "fail"} onClick={choose("fail")}>
          {chosen === "fail" ? "● " : "○ "}ends the run
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
