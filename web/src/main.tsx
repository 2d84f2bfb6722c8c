import "@mantine/core/styles.css";
import "@xyflow/react/dist/style.css";
import "./style.css";
import "./canvas.css";

import { MantineProvider, createTheme } from "@mantine/core";
import { createRoot } from "react-dom/client";

import { App } from "./views/shell/App";

const theme = createTheme({
  primaryColor: "teal",
  primaryShade: { light: 9, dark: 8 },
  defaultRadius: "sm",
  fontSizes: { xs: "12px", sm: "13px", md: "14px" },
});

createRoot(document.getElementById("root")!).render(
  <MantineProvider theme={theme} defaultColorScheme="auto">
    <App />
  </MantineProvider>,
);
