import { Text } from "@mantine/core";

import { deedLine } from "../../model/steering";
import type { Execution } from "../../model/types";

/** Who did what to a run, the latest first; somebody who joins late sees all of it. */
export function History({ execution }: { execution: Execution }) {
  const deeds = [...execution.deeds].reverse();
  return (
    <div>
      <h4>What happened</h4>
      {deeds.length === 0 && (
        <Text size="xs" c="dimmed">
          nothing yet
        </Text>
      )}
      <ol className="deeds" aria-label="What happened">
        {deeds.map((deed, i) => (
          <li key={deeds.length - i}>
            <time>{new Date(deed.at * 1000).toLocaleTimeString()}</time> {deedLine(deed)}
          </li>
        ))}
      </ol>
    </div>
  );
}
