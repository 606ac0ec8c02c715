// Composes the demo graph with `ogive compose` and serves the printed supergraph twice, with `ogive serve` and with npm
// `@apollo/gateway` (a black box), before the same subgraphs (`ogive mock`). Their answers must be equal.
//   npm ci && node compare.mjs PATH/TO/ogive
// Operations: the demo's own, every query field with all its sub-fields to a depth, and every field of every type on
// its own. Ends with a non-zero status on any difference.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { ApolloGateway } from "@apollo/gateway";
import { buildSchema, getNamedType, isAbstractType, isCompositeType, isListType, isNonNullType, isRequiredArgument, parse, validate } from "graphql";

const DEPTH = 3;
const binary = process.argv[2];
if (!binary) throw new Error("usage: compare.mjs PATH/TO/ogive");
const demo = new URL("../../examples/demo", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "ogive-gateway-"));
const children = [];

/** Starts a server and returns its address, which it prints on its first lines. */
function serve(...args) {
  const child = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  return new Promise((resolve, reject) => {
    let text = "";
    const read = (chunk) => {
      text += chunk;
      const found = /127\.0\.0\.1:(\d+)/.exec(text);
      if (found) resolve(`http://127.0.0.1:${found[1]}`);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", (code) => reject(new Error(`ogive ${args.join(" ")} ended with ${code}: ${text}`)));
  });
}

function compose(...args) {
  const run = spawnSync(binary, ["compose", ...args], { encoding: "utf8" });
  if (run.status !== 0) throw new Error(run.stderr);
  return run.stdout;
}

const sample = (type) => {
  const name = getNamedType(type).name;
  if (isListType(isNonNullType(type) ? type.ofType : type)) return "[]";
  return { Int: "1", Float: "1.5", Boolean: "true", ID: '"p1"', String: '"a"' }[name] ?? null;
};
function call(field) {
  const required = field.args.filter(isRequiredArgument);
  const values = required.map((a) => [a.name, sample(a.type)]);
  if (values.some(([, v]) => v === null)) return null;
  return field.name + (values.length ? `(${values.map(([n, v]) => `${n}: ${v}`).join(", ")})` : "");
}

/** All fields of a type down to a depth. */
function everything(schema, type, depth) {
  const out = ["__typename"];
  for (const field of Object.values(type.getFields?.() ?? {})) {
    const text = call(field);
    const target = getNamedType(field.type);
    if (text === null) continue;
    if (!isCompositeType(target)) out.push(text);
    else if (depth > 0) out.push(`${text} ${everything(schema, target, depth - 1)}`);
  }
  if (isAbstractType(type) && depth > 0)
    for (const object of schema.getPossibleTypes(type)) out.push(`... on ${object.name} ${everything(schema, object, depth - 1)}`);
  return `{ ${out.join(" ")} }`;
}

/** One query per field of every type, by the shortest way to the type. */
function singles(schema) {
  const out = [];
  const seen = new Map([[schema.getQueryType(), (inner) => `{ ${inner} }`]]);
  for (const [type, wrap] of seen) {
    const reach = (target, step) => {
      if (!seen.has(target)) seen.set(target, (inner) => wrap(`${step} { ${inner} }`));
    };
    for (const field of Object.values(type.getFields?.() ?? {})) {
      const text = call(field);
      if (text === null) continue;
      const target = getNamedType(field.type);
      out.push(wrap(isCompositeType(target) ? `${text} { __typename }` : text));
      if (isCompositeType(target)) reach(target, text);
    }
    if (isAbstractType(type)) for (const object of schema.getPossibleTypes(type)) reach(object, `... on ${object.name}`);
  }
  return out;
}

try {
  const mock = await serve("mock", "--config", join(demo, "mock.yaml"), "--listen", "127.0.0.1:0");
  const names = ["accounts", "inventory", "products", "reviews"];
  const files = names.flatMap((n) => ["--url", `${n}=${mock}/graphql/${n}`]).concat(names.map((n) => join(demo, `${n}.graphql`)));
  const supergraph = join(folder, "supergraph.graphql");
  compose("-o", supergraph, ...files);
  const schema = buildSchema(compose("--api", ...files));
  const ours = await serve("serve", "--supergraph", supergraph, "--listen", "127.0.0.1:0");
  const peer = new ApolloGateway({ supergraphSdl: readFileSync(supergraph, "utf8"), logger: { debug() {}, info() {}, warn() {}, error: console.error } });
  const { executor } = await peer.load();

  const operations = [readFileSync(join(demo, "query.graphql"), "utf8")];
  const query = schema.getQueryType();
  for (const field of Object.values(query.getFields())) {
    const text = call(field);
    const target = getNamedType(field.type);
    if (text !== null && isCompositeType(target)) operations.push(`{ ${text} ${everything(schema, target, DEPTH)} }`);
  }
  operations.push(...singles(schema));

  let [compared, different, skipped] = [0, 0, 0];
  for (const text of operations) {
    const document = parse(text);
    if (validate(schema, document).length > 0) {
      skipped += 1;
      continue;
    }
    const response = await fetch(`${ours}/graphql`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ query: text }) });
    const our = await response.json();
    const their = await executor({ document, request: { query: text, variables: {} }, context: {}, queryHash: text, schema, metrics: {}, cache: undefined, operationName: null, operation: document.definitions[0] });
    const plain = (v) => JSON.parse(JSON.stringify(v ?? null));
    compared += 1;
    if (!isDeepStrictEqual(plain(our.data), plain(their.data)) || (our.errors?.length ?? 0) !== (their.errors?.length ?? 0)) {
      different += 1;
      console.log(`DIFFERENT ${text.slice(0, 300)}\n  ours:  ${JSON.stringify(our).slice(0, 400)}\n  peer:  ${JSON.stringify(their).slice(0, 400)}`);
    }
  }
  console.log(`${compared} operations compared, ${different} different, ${skipped} not valid and left out`);
  process.exitCode = different === 0 && compared > 50 ? 0 : 1;
  await peer.stop();
} finally {
  for (const child of children) {
    child.removeAllListeners("exit");
    child.kill();
  }
  rmSync(folder, { recursive: true });
}
