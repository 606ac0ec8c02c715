// Records what the second opinion makes of the contracts in crates/compose/tests/contracts into their `guild.json`,
// with a hash of the input (FNV-1a 64 over name, 0, sdl, 0 of each subgraph, then the filter), so that the tests need no node.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { parse } from "graphql";
import * as library from "@theguild/federation-composition";

const base = new URL("../../crates/compose/tests/contracts", import.meta.url).pathname;
const composeSchemaContract = library.composeSchemaContract ?? library.default.composeSchemaContract;

function hash(texts) {
  let hash = 0xcbf29ce484222325n;
  for (const text of texts) for (const byte of [...Buffer.from(text, "utf8"), 0]) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return hash.toString(16).padStart(16, "0");
}

for (const name of readdirSync(base).sort()) {
  const path = `${base}/${name}`;
  const files = readdirSync(path).sort().filter((f) => f.endsWith(".graphql"));
  const subgraphs = files.map((f) => ({ name: f.slice(0, -".graphql".length), url: "http://localhost", sdl: readFileSync(`${path}/${f}`, "utf8") }));
  const filterText = readFileSync(`${path}/filter.json`, "utf8");
  const filter = JSON.parse(filterText);
  const tags = { include: new Set(filter.include), exclude: new Set(filter.exclude) };
  const result = composeSchemaContract(subgraphs.map(({ name, url, sdl }) => ({ name, url, typeDefs: parse(sdl) })), tags, filter.hideUnreachable);
  const record = {
    input: hash([...subgraphs.flatMap((s) => [s.name, s.sdl]), filterText]),
    errors: (result.errors ?? []).map((e) => e.extensions?.code ?? null),
    api: result.publicSdl ?? null,
  };
  writeFileSync(`${path}/guild.json`, JSON.stringify(record, null, 1) + "\n");
  console.log(name, record.errors.join() || "composed");
}
