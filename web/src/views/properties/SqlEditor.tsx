import {
  type CompletionContext,
  type CompletionResult,
  autocompletion,
  closeBrackets,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap, placeholder } from "@codemirror/view";
import { Input, Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";

import type { Api } from "../../model/api";
import { checkSql, functions as functionsOf } from "../../model/build";
import type { Field } from "../../model/form";
import { type SqlForm, expressions, offers } from "../../model/sql";
import type { Column } from "../../model/types";
import { useDocument } from "../context";

let known: Promise<{ name: string }[]> | null = null;

/** Spark's functions, asked for once; none before Spark is up, and asked for again then. */
async function sparkFunctions(api: Api): Promise<{ name: string }[]> {
  known ??= functionsOf(api);
  const found = await known.catch(() => []);
  if (found.length === 0) known = null;
  return found;
}

interface Props {
  field: Field;
  form: SqlForm;
  label: string;
  value: string;
  columns: Column[];
  problem: string | null;
  hint: string;
  onChange: (text: string) => void;
}

/** SQL with completion of columns and functions; what Spark's parser says of it stands below, as one types. */
export default function SqlEditor({ field, form, label, value, columns, problem, hint, onChange }: Props) {
  const { api } = useDocument();
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef({ value, columns, onChange });
  latest.current = { value, columns, onChange };
  const said = useSaid(field, form, value, columns);

  useEffect(() => {
    const complete = async (context: CompletionContext): Promise<CompletionResult | null> => {
      const word = context.matchBefore(/[\w`]+/);
      if (!word && !context.explicit) return null;
      const options = offers(latest.current.columns, await sparkFunctions(api));
      return {
        from: word?.from ?? context.pos,
        options: options.map((o) => ({
          label: o.label,
          detail: o.detail,
          apply: o.apply,
          boost: o.rank * 30,
        })),
        validFor: /^[\w`]*$/,
      };
    };
    const made = new EditorView({
      parent: place.current!,
      state: EditorState.create({
        doc: latest.current.value,
        extensions: [
          history(),
          bracketMatching(),
          closeBrackets(),
          autocompletion({ override: [complete] }),
          keymap.of([...completionKeymap, ...historyKeymap, ...defaultKeymap]),
          EditorView.lineWrapping,
          placeholder(hint),
          EditorView.contentAttributes.of({ "aria-label": field.label, spellcheck: "false" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged && !update.transactions.some((t) => t.isUserEvent("other")))
              latest.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
  }, [api, field.label, hint]);

  useEffect(() => {
    const at = view.current;
    if (at && at.state.doc.toString() !== value) {
      at.dispatch({ changes: { from: 0, to: at.state.doc.length, insert: value }, userEvent: "other" }); // somebody else's edit
    }
  }, [value]);

  return (
    <Input.Wrapper
      label={label}
      description={field.help}
      size="xs"
      error={problem}
      className="sql"
      labelElement="div"
    >
      <div ref={place} />
      {problem === null &&
        said.map((s, i) => (
          <Text
            key={i}
            size="xs"
            role="status"
            c="red"
            component="pre"
            style={{ whiteSpace: "pre-wrap", margin: 0 }}
          >
            ⚠ {s}
          </Text>
        ))}
    </Input.Wrapper>
  );
}

/** What Spark says of the expressions, a little after the last letter. */
function useSaid(field: Field, form: SqlForm, text: string, columns: Column[]): string[] {
  const { api } = useDocument();
  const [said, setSaid] = useState<string[]>([]);
  const json = JSON.stringify(columns); // the columns are other objects after each check
  useEffect(() => {
    const asked = expressions(field, text);
    const known = JSON.parse(json) as Column[];
    if (asked.length === 0 || known.length === 0) return setSaid([]);
    let current = true;
    const timer = setTimeout(() => {
      Promise.all(asked.slice(0, 30).map(({ sql }) => checkSql(api, sql, known, form))).then(
        (found) => {
          if (!current) return;
          setSaid(
            found.flatMap(({ problem }, i) =>
              problem
                ? [
                    `${asked.length > 1 ? `line ${asked[i]!.line}: ` : ""}${problem.message} ${problem.hint ?? ""}`.trim(),
                  ]
                : [],
            ),
          );
        },
        () => current && setSaid([]), // the server is away; the header says so
      );
    }, 300);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [api, field, form, text, json]);
  return said;
}
