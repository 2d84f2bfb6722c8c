import { Center, Loader } from "@mantine/core";
import { Suspense, lazy, useEffect, useState } from "react";

import { Api } from "../../model/api";
import { Home } from "../home/Home";

const Workbench = lazy(() => import("./Workbench"));
const api = new Api();

/** The address says what is open: `#/` the workspace, `#/w/ID` a workflow. */
export function App() {
  const [place, setPlace] = useState(location.hash);
  useEffect(() => {
    const moved = (): void => setPlace(location.hash);
    window.addEventListener("hashchange", moved);
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  const id = /^#\/w\/([a-z0-9_-]+)/.exec(place)?.[1];
  if (id === undefined) return <Home api={api} />;
  return (
    <Suspense
      fallback={
        <Center h="100%">
          <Loader />
        </Center>
      }
    >
      <Workbench key={id} id={id} api={api} />
    </Suspense>
  );
}
