// Composes the supergraphs of this folder anew: `npm install --no-save @theguild/federation-composition graphql@16`
// in any folder, then `node bench/graphs/compose.mjs THAT_FOLDER`. The lab replaces the addresses when it runs.
import { readFileSync, readdirSync, writeFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const require = createRequire(join(resolve(process.argv[2] ?? "."), "package.json"));
const { parse } = require("graphql");
const { composeServices } = require("@theguild/federation-composition");
const root = new URL(".", import.meta.url).pathname;

for (const graph of readdirSync(root).filter((name) => statSync(join(root, name)).isDirectory())) {
  const folder = join(root, graph, "subgraphs");
  const services = readdirSync(folder).sort().map((file) => {
    const name = file.replace(/\.graphql$/, "");
    const url = `http://127.0.0.1:4200/graphql/${name}`;
    return { name, url, typeDefs: parse(readFileSync(join(folder, file), "utf8")) };
  });
  const { supergraphSdl, errors } = composeServices(services);
  if (errors?.length) throw new Error(`${graph}: ${errors.map((error) => error.message).join("\n")}`);
  writeFileSync(join(root, graph, "supergraph.graphql"), supergraphSdl.trimEnd() + "\n");
  console.log(`${graph}: ${services.length} subgraphs`);
}
