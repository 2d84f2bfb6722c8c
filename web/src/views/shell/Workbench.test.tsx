// @vitest-environment happy-dom
/** What is drawn again when a run goes on: the figures, not the canvas around them and not the properties. */
import { MantineProvider } from "@mantine/core";
import { type ReactNode, Profiler, act } from "react";
import { type Root, createRoot } from "react-dom/client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { Api } from "../../model/api";
import { sampleExecution, sampleKind } from "../../model/samples";
import type { Execution } from "../../model/types";
import Workbench from "./Workbench";

const drawn = vi.hoisted(() => ({ canvas: 0, properties: 0 }));

// The canvas draws its comments each time it is drawn itself; nodes and edges may be drawn alone.
vi.mock("../canvas/CommentLayer", () => ({
  CommentLayer: () => {
    drawn.canvas++;
    return null;
  },
}));
vi.mock("../properties/Properties", async (load) => {
  const { Properties } = await load<typeof import("../properties/Properties")>();
  return {
    Properties: () => (
      <Profiler id="properties" onRender={() => drawn.properties++}>
        <Properties />
      </Profiler>
    ),
  };
});

class Socket {
  static readonly OPEN = 1;
  static all: Socket[] = [];
  readyState = 0;
  onmessage: (event: { data: string }) => void = () => undefined;
  constructor(readonly url: string) {
    Socket.all.push(this);
  }
  close(): void {}
}

function running(taken: number): Execution {
  const [figures] = sampleExecution.progress!.operators;
  const operators = [{ ...figures!, name: "distinct", taken, given: taken }];
  return { ...sampleExecution, progress: { ...sampleExecution.progress!, epoch: 0, operators } };
}

let root: Root;
let page: HTMLElement;

beforeEach(() => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  vi.stubGlobal("WebSocket", Socket);
  page = document.body.appendChild(document.createElement("div"));
  root = createRoot(page);
});

afterEach(async () => {
  await act(async () => root.unmount());
  page.remove();
  Socket.all = [];
  vi.unstubAllGlobals();
});

async function show(view: ReactNode): Promise<void> {
  await act(async () => root.render(<MantineProvider>{view}</MantineProvider>));
}

async function tick(taken: number): Promise<void> {
  const live = Socket.all.find((socket) => socket.url.endsWith("/api/live"))!;
  await act(async () =>
    live.onmessage({ data: JSON.stringify({ kind: "execution", data: running(taken) }) }),
  );
}

it("a tick of a run draws the figures anew, and neither the canvas nor the properties", async () => {
  const answers = (path: string): unknown => (path === "/api/operators" ? [sampleKind("distinct")] : []);
  const api = new Api(async (path) => new Response(JSON.stringify(answers(path))));
  await show(<Workbench id="w" api={api} />);
  await act(async () => page.querySelector<HTMLElement>("[data-kind=distinct]")!.click()); // adds and selects it
  expect(page.querySelector<HTMLInputElement>(".properties input")!.value).toBe("distinct");
  await tick(1);
  const before = { ...drawn };
  for (const taken of [2, 3, 4]) await tick(taken);
  expect(page.querySelector("[data-operator=distinct] .counts")!.textContent).toBe("in 4out 4");
  expect(page.querySelector("[aria-label=Execution]")!.textContent).toContain("Runs: 50 %");
  expect({ ...drawn }).toEqual(before);
});
