// Finds the operations of a small app with the tools of others and with ogive, and compares what they write.
// `node run.mjs PATH/TO/ogive`

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import assert from "node:assert/strict";

const here = dirname(fileURLToPath(import.meta.url));
const examples = join(here, "../../examples");
const ogive = process.argv[2];
const root = mkdtempSync(join(tmpdir(), "ogive-documents-"));
const run = (command, args, cwd) => execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

// What is written in many ways, all of which the tool of Apollo's reads.
const MORE = `
import { gql } from "@apollo/client";
// it's \`not\` gql
const a = gql\`
  query Written($first: Int = 2, $s: String = "a b") @keep {
    # a comment
    one: topProducts(first: $first) { name, ... on Product @include(if: true) { price { amount } } __typename }
    me { ...Who }
  }
  fragment Who on Person { name reviews { stars } }
\`;
export const element = <p title="gql\`{x}\`">don't \` {gql\`mutation Add { addReview(input: { sku: "1", stars: 5 }) { stars } }\`}</p>;
const b = /\`/.test("\`") ? gql\`subscription Sub { x { y { z } } }\` : \`query No { no }\`;
`;

function apollo() {
  const app = join(root, "apollo");
  cpSync(join(examples, "shop-app/src"), join(app, "src"), { recursive: true });
  // Its tool reads Vue only with the compiler of Vue.
  rmSync(join(app, "src/Account.vue"));
  writeFileSync(join(app, "src/more.tsx"), MORE);
  cpSync(join(here, "package.json"), join(app, "package.json"));
  writeFileSync(
    join(app, "persisted-query-manifest.config.json"),
    JSON.stringify({ documents: ["src/**/*.{graphql,gql,js,jsx,ts,tsx}"], output: "theirs.json" }),
  );
  run("ln", ["-s", join(here, "node_modules"), join(app, "node_modules")]);
  run(join(here, "node_modules/.bin/generate-persisted-query-manifest"), [], app);
  run(ogive, ["operations", "extract", "src", "--output", "ours.json"], app);
  const read = (name) => JSON.parse(readFileSync(join(app, name), "utf8"));
  const [theirs, ours] = [read("theirs.json"), read("ours.json")];
  for (const manifest of [theirs, ours]) manifest.operations.sort((x, y) => (x.name < y.name ? -1 : 1));
  assert.deepEqual(ours, theirs);
  return theirs.operations.length;
}

function relay() {
  const app = join(root, "relay");
  mkdirSync(join(app, "src/__generated__"), { recursive: true });
  writeFileSync(join(app, "schema.graphql"), "type Query { me: Person } type Person { id: ID! name: String }");
  writeFileSync(
    join(app, "src/App.js"),
    "const { graphql } = require('relay-runtime');\nconst q = graphql`query AppQuery { me { name ...App_person } }`;\nconst f = graphql`fragment App_person on Person { id }`;\n",
  );
  writeFileSync(
    join(app, "relay.config.json"),
    JSON.stringify({ src: "./src", schema: "./schema.graphql", language: "javascript", artifactDirectory: "./src/__generated__",
      persistConfig: { file: "./queries.json", algorithm: "SHA256" } }),
  );
  writeFileSync(join(app, "queries.json"), "{}");
  run("node", [join(here, "node_modules/relay-compiler/cli.js")], app);
  const theirs = JSON.parse(readFileSync(join(app, "queries.json"), "utf8"));
  const entries = Object.entries(theirs);
  assert.equal(entries.length, 1);
  // What it writes is a manifest here, and its ids are made as ours are.
  const ours = JSON.parse(run(ogive, ["operations", "extract", "queries.json", "--format", "relay"], app));
  assert.deepEqual(ours, theirs);
  for (const [id, text] of entries) assert.equal(id, createHash("sha256").update(text).digest("hex"));
  return entries.length;
}

try {
  console.log(`apollo: ${apollo()} operations, the same manifest`);
  console.log(`relay: ${relay()} operation, the same ids`);
} finally {
  rmSync(root, { recursive: true, force: true });
}
