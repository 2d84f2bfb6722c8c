import { Button, Group, Paper, Text } from "@mantine/core";
import { useEffect, useState } from "react";

const KEY = "samovar-toured";
const newcomer = localStorage.getItem("samovar-person") === null && localStorage.getItem(KEY) === null;

const STEPS: { title: string; text: string; at: string }[] = [
  {
    title: "Build",
    text: "Choose a source on the left, then what to do with its rows: each operator is connected to the one that is selected. End with a sink or a chart. Ctrl+K finds everything by name.",
    at: ".palette",
  },
  {
    title: "Run",
    text: "Run starts the workflow on Spark. Counters on the operators follow it; rows, charts and problems come below. “Run to here” stops at the selected operator.",
    at: ".bench > header",
  },
  {
    title: "Travel",
    text: "In the panel Time any moment of the run can be gone to: the canvas shows what each operator had processed then, and you can step over, into, out and back, or ask when something became true.",
    at: ".bench > .below",
  },
];

/** Three steps for those who are here for the first time; the command “Show the tour” brings it back. */
export function Tour() {
  const [step, setStep] = useState<number | null>(newcomer ? 0 : null);
  useEffect(() => {
    const show = (): void => setStep(0);
    window.addEventListener("samovar-tour", show);
    return () => window.removeEventListener("samovar-tour", show);
  }, []);
  const shown = step === null ? null : STEPS[step]!;
  useEffect(() => {
    const target = shown && document.querySelector<HTMLElement>(shown.at);
    target?.classList.add("toured");
    return () => target?.classList.remove("toured");
  }, [shown]);
  if (shown === null || step === null) return null;
  const end = (): void => {
    localStorage.setItem(KEY, "yes");
    setStep(null);
  };
  return (
    <Paper className="tour" withBorder shadow="md" p="sm" role="dialog" aria-label="Tour">
      <Text fw={700} size="sm">
        {step + 1} of {STEPS.length}: {shown.title}
      </Text>
      <Text size="sm">{shown.text}</Text>
      <Group justify="space-between" mt="xs">
        <Button size="compact-xs" variant="subtle" onClick={end}>
          Skip
        </Button>
        {step < STEPS.length - 1 ? (
          <Button size="compact-xs" onClick={() => setStep(step + 1)}>
            Next
          </Button>
        ) : (
          <Button size="compact-xs" onClick={end}>
            Done
          </Button>
        )}
      </Group>
    </Paper>
  );
}
