import { Badge, Group, Tooltip } from "@mantine/core";

import { useDocument } from "../context";
import { useOthers } from "./useOthers";

/** Who is at this workflow. A click on somebody follows them: their moments, selections and view become one's own. */
export function People() {
  const { person, following, follow } = useDocument();
  const others = useOthers();
  return (
    <Group gap={4} wrap="nowrap" role="list" aria-label="People">
      <Tooltip label={`${person.name} (you)`}>
        <Badge role="listitem" color={person.color} variant="outline" tt="none">
          {person.name}
        </Badge>
      </Tooltip>
      {others.map(({ client, person: other }) => (
        <div key={client} role="listitem">
          <Tooltip label={following === client ? `Stop following ${other.name}` : `Follow ${other.name}`}>
            <Badge
              component="button"
              type="button"
              color={other.color}
              variant="filled"
              tt="none"
              style={{ cursor: "pointer" }}
              aria-pressed={following === client}
              onClick={() => follow(following === client ? null : client)}
            >
              {following === client ? "👣 " : ""}
              {other.name}
            </Badge>
          </Tooltip>
        </div>
      ))}
    </Group>
  );
}
