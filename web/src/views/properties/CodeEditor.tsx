import { defaultKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import {
  bracketMatching,
  defaultHighlightStyle,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { yCollab, yUndoManagerKeymap } from "y-codemirror.next";
import * as Y from "yjs";

import { useDocument } from "../context";

/** Python code that several people type in at once; undo takes back one's own typing. */
export default function CodeEditor({ text }: { text: Y.Text }) {
  const { connection } = useDocument();
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const undoManager = new Y.UndoManager(text);
    const view = new EditorView({
      parent: place.current!,
      state: EditorState.create({
        doc: text.toString(),
        extensions: [
          lineNumbers(),
          drawSelection(),
          indentOnInput(),
          indentUnit.of("    "),
          bracketMatching(),
          syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
          python(),
          keymap.of([...yUndoManagerKeymap, indentWithTab, ...defaultKeymap]),
          EditorView.contentAttributes.of({ "aria-label": "code", tabindex: "0" }),
          yCollab(text, connection.awareness, { undoManager }),
        ],
      }),
    });
    return () => {
      view.destroy();
      undoManager.destroy();
    };
  }, [text, connection]);
  return <div ref={place} />;
}
