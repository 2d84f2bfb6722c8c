import type { ReactNode } from "react";

import type { Json, StateValue } from "../../model/types";
import { brief, full } from "../../model/values";

/** An operator's state: names and values, maps entry by entry. `changed` marks entries, `wrap` dresses values. */
export function StateTable({
  label,
  state,
  changed = () => false,
  wrap = (_, __, shown) => shown,
}: {
  label: string;
  state: Record<string, StateValue>;
  changed?: (name: string, key: Json | undefined) => boolean;
  wrap?: (name: string, key: Json | undefined, shown: ReactNode) => ReactNode;
}) {
  return (
    <table aria-label={label}>
      <tbody>
        {Object.entries(state).map(([name, value]) =>
          value.kind === "value" ? (
            <tr key={name} className={changed(name, undefined) ? "changed" : undefined}>
              <th>{name}</th>
              <td>{wrap(name, undefined, brief(value.value, 200))}</td>
            </tr>
          ) : (
            [
              <tr key={name}>
                <th>{name}</th>
                <td>{value.size} entries</td>
              </tr>,
              ...value.entries.map(([key, entry]) => (
                <tr key={`${name}/${full(key)}`} className={changed(name, key) ? "changed" : undefined}>
                  <td style={{ paddingLeft: 12 }}>{brief(key, 60)}</td>
                  <td>{wrap(name, key, brief(entry, 120))}</td>
                </tr>
              )),
            ]
          ),
        )}
      </tbody>
    </table>
  );
}
