/** Forms from JSON Schema: what kind of input a field needs, and texts to values and back. */
import type { FieldSchema, Json, OperatorKind } from "./types";

export type FieldKind =
  "text" | "expression" | "number" | "flag" | "choice" | "texts" | "mapping" | "json" | "code";

export interface Field {
  name: string;
  label: string;
  help: string;
  kind: FieldKind;
  required: boolean;
  choices: string[];
  /** For a list: the values it may have. */
  offers: string[];
  integer: boolean;
  minimum?: number;
  maximum?: number;
  placeholder: string;
}

const EXPRESSIONS = ["condition"];

export function fieldsOf(kind: OperatorKind): Field[] {
  return Object.entries(kind.schema.properties).map(([name, schema]) => {
    const required = kind.schema.required.includes(name);
    const numeric = numberSchema(schema);
    return {
      name,
      label: name.replaceAll("_", " "),
      help: schema.description ?? "",
      kind: kindOf(name, schema),
      required,
      choices: choicesOf(schema),
      offers: (schema.items?.enum ?? []).filter((c): c is string => typeof c === "string"),
      integer: numeric?.type === "integer",
      minimum: numeric?.minimum,
      maximum: numeric?.maximum,
      placeholder: schema.default === undefined || schema.default === null ? "" : String(schema.default),
    };
  });
}

function kindOf(name: string, schema: FieldSchema): FieldKind {
  if (name === "code") return "code";
  if (choicesOf(schema).length > 0) return "choice";
  const options = [schema, ...(schema.anyOf ?? [])];
  const has = (type: string): boolean => options.some((o) => [o.type].flat().includes(type));
  if (schema.items?.enum) return "texts";
  if (options.some((o) => o.type === "array" && [o.items?.type].flat().includes("string"))) return "texts";
  if (has("array")) return "json";
  if (has("object")) return textual(schema) ? "mapping" : "json";
  if (has("boolean") && !has("string")) return "flag";
  if (numberSchema(schema)) return "number";
  return EXPRESSIONS.includes(name) ? "expression" : has("string") ? "text" : "json";
}

/** Whether an object's values may be texts, and nothing is lost when they are. */
function textual(schema: FieldSchema): boolean {
  const values = schema.additionalProperties;
  return !schema.anyOf && typeof values === "object" && [values.type].flat().includes("string");
}

function numberSchema(schema: FieldSchema): FieldSchema | undefined {
  const options = [schema, ...(schema.anyOf ?? [])];
  if (options.some((o) => [o.type].flat().includes("string"))) return undefined;
  return options.find((o) => o.type === "number" || o.type === "integer");
}

function choicesOf(schema: FieldSchema): string[] {
  const found = schema.enum ?? schema.anyOf?.find((o) => o.enum)?.enum ?? [];
  return found.filter((c): c is string => typeof c === "string");
}

export type Parsed = { value: Json | undefined; problem: null } | { value: undefined; problem: string };

const nothing: Parsed = { value: undefined, problem: null };

/** A field's value from what somebody typed. Nothing typed: the field is left out. */
export function parse(field: Field, text: string): Parsed {
  if (text.trim() === "") return nothing;
  switch (field.kind) {
    case "number": {
      const value = Number(text);
      if (!Number.isFinite(value) || (field.integer && !Number.isInteger(value))) {
        return {
          value: undefined,
          problem: `Expected ${field.integer ? "a whole number" : "a number"}, got '${text}'.`,
        };
      }
      return { value, problem: null };
    }
    case "texts":
      return { value: linesOf(text), problem: null };
    case "mapping":
      return mapping(text);
    case "json":
      return json(text);
    default:
      return { value: text, problem: null };
  }
}

function linesOf(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** One entry a line: `name = expression`. */
function mapping(text: string): Parsed {
  const made: Record<string, Json> = {};
  for (const line of linesOf(text)) {
    const cut = line.indexOf("=");
    if (cut < 1) return { value: undefined, problem: `Expected 'name = value' on each line, got '${line}'.` };
    made[line.slice(0, cut).trim()] = line.slice(cut + 1).trim();
  }
  return { value: made, problem: null };
}

function json(text: string): Parsed {
  try {
    return { value: JSON.parse(text) as Json, problem: null };
  } catch (error) {
    return { value: undefined, problem: `Expected JSON: ${(error as Error).message}.` };
  }
}

/** A field's value as it stands in its input. */
export function shown(field: Field, value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (field.kind === "texts") return Array.isArray(value) ? value.map(String).join("\n") : String(value);
  if (field.kind === "mapping" && typeof value === "object" && !Array.isArray(value)) {
    return Object.entries(value)
      .map(([k, v]) => `${k} = ${String(v)}`)
      .join("\n");
  }
  if (field.kind === "json") return JSON.stringify(value, null, 1).replace(/\n\s*/g, " ");
  return typeof value === "string" ? value : JSON.stringify(value);
}
