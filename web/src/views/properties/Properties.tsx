import { Alert, Badge, Button, Group, Select, Stack, Switch, Text, TextInput, Textarea } from "@mantine/core";
import { Suspense, lazy, useEffect, useMemo, useState } from "react";

import { runTo } from "../../model/build";
import { type Field, fieldsOf, parse, shown } from "../../model/form";
import { isActive } from "../../model/executions";
import type { Operator } from "../../model/shared";
import { sqlForm } from "../../model/sql";
import type { Column, Json } from "../../model/types";
import { useDocument, useExecution, useJourney, useSnapshot } from "../context";

const CodeEditor = lazy(() => import("./CodeEditor"));
const SqlEditor = lazy(() => import("./SqlEditor"));
const Trial = lazy(() => import("./Trial"));
const COLUMN_FIELDS = ["x", "y", "by", "column", "pivot"];

/** The fields of the selected operator, from its JSON Schema. */
export function Properties() {
  const { shared, selected } = useDocument();
  const operator = useSnapshot(shared).operators.find((o) => o.id === selected);
  return (
    <aside className="properties" aria-label="Properties">
      {operator ? <Form key={operator.id} operator={operator} /> : <Empty />}
    </aside>
  );
}

function Empty() {
  const { checked } = useDocument();
  const general = checked.problems.filter((p) => p.operator === null);
  return (
    <Stack gap="xs">
      {general.map((p, i) => (
        <Alert key={i} variant="default" title={`⚠ ${p.message}`}>
          {p.hint}
        </Alert>
      ))}
      <Text size="sm" c="dimmed">
        Choose an operator on the canvas to see its fields, or add one from the palette.
      </Text>
    </Stack>
  );
}

function Form({ operator }: { operator: Operator }) {
  const { shared, kinds, checked, select } = useDocument();
  const { operators, edges } = useSnapshot(shared);
  const kind = kinds.get(operator.op);
  const fields = useMemo(() => (kind ? fieldsOf(kind) : []), [kind]);
  if (!kind) return <Text>An operator '{operator.op}' is not known here.</Text>;
  const problems = checked.problems.filter((p) => p.operator === operator.name);
  const columns = checked.schemas[operator.name] ?? [];
  const inputs = edges
    .filter((e) => e.target === operator.id)
    .flatMap((e) => checked.schemas[operators.find((o) => o.id === e.source)?.name ?? ""] ?? []);
  return (
    <Stack gap="sm">
      <Group justify="space-between" wrap="nowrap" gap={4}>
        <Badge tt="none" variant="default">
          {operator.op}
        </Badge>
        <Part operator={operator} />
        <Button
          size="compact-xs"
          variant="subtle"
          color="red"
          onClick={() => {
            shared.remove([operator.id]);
            select(null);
          }}
        >
          Remove
        </Button>
      </Group>
      <Name operator={operator} />
      <Text size="xs" c="dimmed" style={{ whiteSpace: "pre-line" }}>
        {kind.description.replaceAll("`", "").replace(/([^\n])\n(?![\n-])/g, "$1 ")}
      </Text>
      {problems.map((p, i) => (
        <Alert key={i} color="red" title={p.message} p="xs">
          {p.hint}
        </Alert>
      ))}
      {fields.map((field) => (
        <Input key={field.name} operator={operator} field={field} inputs={inputs} />
      ))}
      {columns.length > 0 && (
        <div>
          <Text size="xs" fw={600}>
            Columns it gives
          </Text>
          <Text size="xs" c="dimmed">
            {columns.map((c) => `${c.name} ${c.type}`).join(", ")}
          </Text>
        </div>
      )}
    </Stack>
  );
}

/** Running to an operator, and leaving it out of runs. */
function Part({ operator }: { operator: Operator }) {
  const { api, id, shared, connection, person, tell } = useDocument();
  const journey = useJourney();
  const active = useExecution(isActive);
  const on = operator.fields.enabled !== false;
  const run = (): void => {
    journey.leave();
    connection
      .flush()
      .then(() => runTo(api, id, operator.name, person.name))
      .catch(tell);
  };
  return (
    <Group gap={2} wrap="nowrap">
      <Button size="compact-xs" variant="subtle" disabled={active} onClick={run}>
        Run to here
      </Button>
      <Button
        size="compact-xs"
        variant="subtle"
        aria-pressed={!on}
        onClick={() => shared.setField(operator.id, "enabled", on ? false : undefined)}
      >
        {on ? "Disable" : "Enable"}
      </Button>
    </Group>
  );
}

function Name({ operator }: { operator: Operator }) {
  const { shared } = useDocument();
  const [text, setText] = useState(operator.name);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => setText(operator.name), [operator.name]);
  return (
    <TextInput
      label="name"
      size="xs"
      value={text}
      error={problem}
      onChange={(e) => {
        setText(e.currentTarget.value);
        setProblem(shared.rename(operator.id, e.currentTarget.value));
      }}
      onBlur={() => {
        setText(operator.name);
        setProblem(null);
      }}
    />
  );
}

function Input({ operator, field, inputs }: { operator: Operator; field: Field; inputs: Column[] }) {
  const columns = inputs.map((c) => c.name);
  const { shared, api, tell } = useDocument();
  const value = operator.fields[field.name];
  const [text, setText] = useState(shown(field, value));
  const [problem, setProblem] = useState<string | null>(null);
  const [files, setFiles] = useState<string[]>([]);
  const set = (given: Json | undefined): void => shared.setField(operator.id, field.name, given);
  const json = JSON.stringify(value) as string | undefined; // the value is another object after each edit
  useEffect(() => {
    // somebody else's edit, or an undo: what stands here already means the same stays as it was typed
    const now = json === undefined ? undefined : (JSON.parse(json) as Json);
    setText((typed) => (JSON.stringify(parse(field, typed).value) === json ? typed : shown(field, now)));
    setProblem(null);
  }, [field, json]);
  const path =
    (operator.op === "read" && field.name === "path") ||
    (operator.op === "query" && field.name === "database");
  useEffect(() => {
    if (path) api.files().then((found) => setFiles(found.map((f) => f.path)), tell);
  }, [path, api, tell]);

  const label = field.required ? `${field.label} *` : field.label;
  const common = {
    label,
    "aria-label": field.label,
    description: field.help,
    size: "xs" as const,
    error: problem,
  };
  const typed = (given: string): void => {
    setText(given);
    const parsed = parse(field, given);
    setProblem(parsed.problem);
    if (parsed.problem === null) set(parsed.value);
  };
  if (field.kind === "code") {
    const shared_text = shared.text(operator.id, field.name);
    return (
      <div className="code">
        <Text size="xs" fw={500}>
          {label}
        </Text>
        <Suspense fallback={<Text size="xs">…</Text>}>
          {shared_text && <CodeEditor text={shared_text} />}
          <Trial operator={operator} />
        </Suspense>
      </div>
    );
  }
  if (field.kind === "flag") {
    return (
      <Switch
        {...common}
        checked={value === true}
        onChange={(e) => set(e.currentTarget.checked ? true : undefined)}
      />
    );
  }
  if (field.kind === "choice") {
    return (
      <Select
        {...common}
        data={field.choices}
        value={typeof value === "string" ? value : null}
        clearable={!field.required}
        placeholder={field.placeholder}
        onChange={(chosen) => set(chosen ?? undefined)}
      />
    );
  }
  const sql = sqlForm(operator.op, field);
  if (sql !== null) {
    return (
      <Suspense fallback={<Text size="xs">…</Text>}>
        <SqlEditor
          field={field}
          form={sql}
          label={label}
          value={text}
          columns={inputs}
          problem={problem}
          hint={hintOf(field)}
          onChange={typed}
        />
      </Suspense>
    );
  }
  const list = `names-${operator.id}-${field.name}`;
  const named = field.kind === "text" && COLUMN_FIELDS.includes(field.name);
  const known = field.offers.length > 0 ? field.offers : path ? files : columns;
  const several =
    field.kind === "texts" ||
    field.kind === "mapping" ||
    field.kind === "json" ||
    field.kind === "expression";
  return (
    <div>
      {several ? (
        <Textarea
          {...common}
          autosize
          minRows={1}
          maxRows={8}
          value={text}
          spellCheck={false}
          placeholder={hintOf(field)}
          onChange={(e) => typed(e.currentTarget.value)}
        />
      ) : (
        <TextInput
          {...common}
          value={text}
          placeholder={field.placeholder}
          spellCheck={false}
          list={named ? list : undefined}
          onChange={(e) => typed(e.currentTarget.value)}
        />
      )}
      {named && (
        <datalist id={list}>
          {columns.map((c) => (
            <option key={c} value={c} />
          ))}
        </datalist>
      )}
      {known.length > 0 && (several || path) && field.kind !== "json" && (
        <Group gap={4} mt={4} aria-label={`Names for ${field.label}`}>
          {known.slice(0, 12).map((name) => (
            <Button
              key={name}
              size="compact-xs"
              variant="default"
              fw={400}
              onClick={() =>
                typed(
                  text.trim() === ""
                    ? name
                    : field.kind === "texts"
                      ? `${text.trimEnd()}\n${name}`
                      : `${text} ${name}`,
                )
              }
            >
              {name}
            </Button>
          ))}
        </Group>
      )}
    </div>
  );
}

function hintOf(field: Field): string {
  if (field.kind === "texts") return "one on each line";
  if (field.kind === "mapping") return "name = value, one on each line";
  return field.placeholder;
}
