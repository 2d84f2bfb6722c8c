/**
 * Types of the server's HTTP API, from its OpenAPI description on standard input, into src/model/server.ts.
 * With --check nothing is written: it fails when the file is not what the description says.
 */
import { readFile, writeFile } from "node:fs/promises";
import { text } from "node:stream/consumers";

import openapiTS, { astToString } from "openapi-typescript";
import prettier from "prettier";

const FILE = new URL("src/model/server.ts", import.meta.url);
const HEAD = `/** Made by "npm run types" from the server's OpenAPI description: not to be edited. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

`;
const JSON_REF = { $ref: "#/components/schemas/Json" };

/** Without texts for people, so that types change when the API does, and the answer to a request that cannot be read. */
const TEXTS = ["title", "summary", "description"];
const UNREADABLE = ["422", "HTTPValidationError", "ValidationError"];

function read(key, value) {
  if (UNREADABLE.includes(key) || (TEXTS.includes(key) && typeof value === "string")) return undefined;
  return value?.["x-json"] ? JSON_REF : value;
}

const description = JSON.parse(await text(process.stdin), read);
description.components.schemas.Json = {};
const nodes = await openapiTS(description, {
  defaultNonNullable: false, // in a request, a field with a default may be left out
});
// a type that refers to itself needs a name of its own
const types = astToString(nodes).replaceAll('components["schemas"]["Json"]', "Json");
const made = await prettier.format(HEAD + types, { parser: "typescript", printWidth: 110 });

if (!process.argv.includes("--check")) await writeFile(FILE, made);
else if (made !== (await readFile(FILE, "utf8"))) {
  console.error(
    "src/model/server.ts is not what the server's description says: run `npm run types` in web/.",
  );
  process.exitCode = 1;
}
