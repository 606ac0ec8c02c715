// Records what the reference implementation says about every case of crates/compose into its `reference.json`,
// with a hash of the input (FNV-1a 64 over name, 0, sdl, 0), so that the tests need no node.
import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";

const here = new URL(".", import.meta.url).pathname;
const base = process.argv[2] ?? new URL("../../crates/compose/tests/cases", import.meta.url).pathname;
const folders = (path) => readdirSync(path).sort().filter((n) => statSync(`${path}/${n}`).isDirectory()).map((n) => `${path}/${n}`);

function hash(subgraphs) {
  let hash = 0xcbf29ce484222325n;
  for (const { name, sdl } of subgraphs) {
    for (const text of [name, sdl]) {
      for (const byte of [...Buffer.from(text, "utf8"), 0]) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
    }
  }
  return hash.toString(16).padStart(16, "0");
}

const coordinate = (message) => /"(@?\w+(?:\.\w+)?(?:\(\w+:\))?)"/.exec(message)?.[1] ?? null;
const cases = folders(base).flatMap(folders).map((path) => ({
  path,
  subgraphs: readdirSync(path).sort().filter((f) => f.endsWith(".graphql")).map((f) => {
    const name = f.slice(0, -".graphql".length);
    return { name, url: `http://${name}`, sdl: readFileSync(`${path}/${f}`, "utf8") };
  }),
}));
const run = spawnSync("node", ["--stack-size=4000", `${here}compose.mjs`], {
  input: cases.map((c) => JSON.stringify(c.subgraphs)).join("\n") + "\n",
  maxBuffer: 1 << 30,
});
const answers = run.stdout.toString().trim().split("\n").map((l) => JSON.parse(l));
cases.forEach(({ path, subgraphs }, i) => {
  const { supergraph, errors, hints } = answers[i];
  const record = {
    input: hash(subgraphs),
    errors: errors.map((e) => ({ code: e.code, coordinate: coordinate(e.message) })),
    hints: errors.length ? [] : hints.map((h) => ({ code: h.code, coordinate: h.coordinate })),
    supergraph: supergraph ?? null,
  };
  writeFileSync(`${path}/reference.json`, JSON.stringify(record, null, 1) + "\n");
});
console.log(`${cases.length} cases recorded`);
