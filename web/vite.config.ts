import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/samovar/server/static",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the server's content security policy takes scripts and fonts from files alone
    chunkSizeWarningLimit: 900,
  },
  test: {
    environment: "node", // a test that needs a page says so in its first line
    include: ["src/**/*.test.{ts,tsx}"],
    testTimeout: 60_000, // on a machine that is busy with Spark, too
  },
});
