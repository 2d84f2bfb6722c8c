import { Text } from "@mantine/core";
import { useEffect, useState } from "react";

import { charts as chartsOf } from "../../model/build";
import type { Chart } from "../../model/chart";
import type { Recording } from "../../model/types";
import { ChartView } from "./ChartView";
import { useDocument } from "../context";

/** The charts of a run; drawn anew when an epoch has been committed, so that they grow while the run goes on. */
export default function Charts({ recording }: { recording: Recording }) {
  const { api, tell } = useDocument();
  const [charts, setCharts] = useState<Chart[] | null>(null);
  useEffect(() => {
    let current = true;
    chartsOf(api, recording.run).then((found) => current && setCharts(found), tell);
    return () => {
      current = false;
    };
  }, [api, tell, recording]);
  if (charts === null)
    return (
      <Text size="sm" c="dimmed">
        Drawing …
      </Text>
    );
  if (charts.length === 0)
    return (
      <Text size="sm" c="dimmed">
        This run has no charts: add one from the group “Charts” of the palette, choose its columns, and run.
      </Text>
    );
  return (
    <div className="charts">
      {charts.map((chart) => (
        <figure key={chart.name} data-chart={chart.name}>
          <figcaption>{chart.title ?? chart.name}</figcaption>
          <ChartView chart={chart} />
        </figure>
      ))}
    </div>
  );
}
