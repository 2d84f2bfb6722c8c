import js from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["node_modules", "src/model/server.ts"] }, // the last is generated
  {
    files: ["src/**/*.{ts,tsx}"],
    extends: [js.configs.recommended, ...tseslint.configs.recommended],
    plugins: { "react-hooks": hooks },
    rules: {
      "react-hooks/rules-of-hooks": "error",
      "react-hooks/exhaustive-deps": "error",
      "@typescript-eslint/no-unused-vars": "off", // the compiler says so (noUnusedLocals)
    },
  },
  {
    files: ["e2e/**/*.mjs", "*.js"],
    extends: [js.configs.recommended],
    languageOptions: { sourceType: "module" },
    rules: { "no-undef": "off" }, // functions that Playwright sends to the page use the page's globals
  },
);
