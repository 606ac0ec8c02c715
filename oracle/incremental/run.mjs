// Answers in parts against the executors of graphql 17, in both forms: generated operations over one subgraph; then clients that are in
// use read some (`clients.mjs`).
// Usage: node run.mjs OGIVE_BINARY [OPERATIONS] [SEED]
// Compared: the parts put together, paths of errors, and which groups and lists are announced, as far as the draft says. Ends with `test result: ..`, and with
// status 1 if anything failed.
import { execFileSync, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { buildSchema, execute, experimentalExecuteIncrementally, legacyExecuteIncrementally, parse } from 'graphql';

const [binary, operations = '300', seed = '1'] = process.argv.slice(2);
if (!binary) {
  console.error('usage: node run.mjs OGIVE_BINARY [OPERATIONS] [SEED]');
  process.exit(2);
}
const PATIENCE = 120_000;

let state = Number(seed) >>> 0;
/** A number below `n` (mulberry32). */
function below(n) {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) % n;
}
const chance = percent => below(100) < percent;

const FIELDS = {
  Query: { shop: 'Shop!', items: '[Item!]', maybe: '[Item]', numbers: '[Int]' },
  Shop: { name: 'String!', owner: 'Person', shelves: '[Shelf!]!', fails: 'String' },
  Shelf: { name: 'String', items: '[Item!]', tags: '[String!]!', matrix: '[[Int!]]' },
  Item: { id: 'Int', name: 'String!', price: 'Int', fails: 'Int', owner: 'Person', parts: '[Item]' },
  Person: { name: 'String', friends: '[Person!]', fails: 'String' },
};
const sdl = Object.entries(FIELDS)
  .map(([type, fields]) => `type ${type} { ${Object.entries(fields).map(([name, of]) => `${name}: ${of}`).join(' ')} }`)
  .join('\n');
// The reference implementation knows the directives of a schema only.
const incremental = 'directive @defer(label: String, if: Boolean! = true) on FRAGMENT_SPREAD | INLINE_FRAGMENT\n' +
  'directive @stream(label: String, if: Boolean! = true, initialCount: Int! = 0) on FIELD\n';
const schema = buildSchema(incremental + sdl);
const broken = () => { throw new Error('it is broken'); };
const person = depth => ({ name: `person ${depth}`, friends: depth > 3 ? [] : [person(depth + 1), person(depth + 1)], fails: broken });
const item = (id, depth = 0) => ({
  id, name: `item ${id}`, price: id % 3 ? id : null, fails: id % 2 ? broken : id, owner: person(2),
  parts: depth > 2 ? null : [item(id + 1, depth + 1), null, item(id + 2, depth + 1)],
});
const shelf = id => ({ name: `shelf ${id}`, items: [item(id), item(id + 1), item(id + 2)], tags: ['a', 'b', 'c'], matrix: [[1, 2], null, [3]] });
const rootValue = {
  shop: { name: 'shop', owner: person(1), shelves: [shelf(1), shelf(5)], fails: broken },
  items: [item(10), item(11), item(12), item(13)],
  maybe: [item(20), null, item(22)],
  numbers: [1, 2, null, 4],
};

let labels = 0;
const label = () => (chance(50) ? `label: "l${labels++}"` : '');
const args = all => (all.filter(Boolean).length ? `(${all.filter(Boolean).join(', ')})` : '');
/** A selection set. What is streamed has a response key of its own, so that no other appearance says otherwise. */
function selections(type, depth) {
  const out = [];
  for (const [name, of] of Object.entries(FIELDS[type])) {
    if (!chance(45)) continue;
    const named = of.replace(/[[\]!]/g, '');
    const below_ = FIELDS[named] ? (depth > 4 ? ' { name }' : ` { ${selections(named, depth + 1)} }`) : '';
    if (of.startsWith('[') && chance(40)) {
      out.push(`s${labels++}: ${name} @stream${args([label(), `initialCount: ${below(3)}`])}${below_}`);
    } else {
      out.push(`${name}${below_}`);
    }
  }
  if (out.length === 0) out.push('__typename');
  if (depth < 5 && chance(40)) out.push(`... @defer${args([label()])} { ${selections(type, depth + 1)} }`);
  if (depth < 5 && chance(15)) out.push(`... @defer${args([label(), 'if: false'])} { ${selections(type, depth + 1)} }`);
  return out.join(' ');
}

const at = (data, path) => path.reduce((value, key) => value?.[key], data);
const text = value => JSON.stringify(value);
function merge(into, more) {
  for (const [key, value] of Object.entries(more)) {
    if (into[key] && value && typeof into[key] === 'object') merge(into[key], value);
    else into[key] = value;
  }
}
/** Puts parts together: the data, where errors are, and what was announced. */
function assemble(parts, form) {
  const [first, ...rest] = structuredClone(parts);
  const { data } = first;
  const errors = [...(first.errors ?? [])];
  const groups = new Map();
  const announced = [];
  const note = pending => pending?.forEach(({ id, path, label }) => groups.set(id, { path, label, has: false }));
  note(first.pending);
  const of2022 = new Map();
  for (const part of rest) {
    note(part.pending);
    for (const one of part.incremental ?? []) {
      errors.push(...(one.errors ?? []));
      let { path } = one;
      if (form === 'current') {
        const group = groups.get(one.id);
        if (!group) throw new Error(`nobody announced ${text(one)}`);
        group.has = true;
        path = [...group.path, ...(one.subPath ?? [])];
        if (one.items) at(data, path).push(...one.items);
        else merge(at(data, path), one.data);
      } else if ('items' in one) {
        const start = path.at(-1);
        const list = at(data, path.slice(0, -1));
        (one.items ?? []).forEach((value, n) => {
          const index = start + n;
          if (index > list.length) throw new Error(`a hole at ${text(path)}`);
          if (list[index] && value && typeof value === 'object') merge(list[index], value);
          else list[index] = value;
        });
        of2022.set(text([path.slice(0, -1), one.label]), true);
      } else {
        if (one.data) merge(at(data, path), one.data);
        of2022.set(text([path, one.label]), true);
      }
    }
    for (const { id, errors: of } of part.completed ?? []) {
      errors.push(...(of ?? []));
      if (!groups.get(id)) throw new Error(`nobody announced what is completed: ${id}`);
      groups.get(id).done = true;
    }
  }
  for (const [id, { path, label, has, done }] of groups) {
    if (!done) throw new Error(`never completed: ${id}`);
    // Values of several groups come with any of them. A list of which nothing is left may be announced or not.
    if (has || !Array.isArray(at(data, path))) announced.push(text([path, label]));
  }
  announced.push(...of2022.keys());
  const places = [...new Set(errors.map(error => text(error.path)))];
  return { data, errors: places.sort(), announced: announced.sort() };
}

async function reference(document, form) {
  const run = form === 'current' ? experimentalExecuteIncrementally : legacyExecuteIncrementally;
  const result = await run({ schema, document, rootValue });
  if (!('initialResult' in result)) return [JSON.parse(text(result))];
  const parts = [result.initialResult];
  for await (const part of result.subsequentResults) parts.push(part);
  return JSON.parse(text(parts));
}

const ACCEPT = { current: 'multipart/mixed;incrementalSpec=v0.2', 2022: 'multipart/mixed;deferSpec=20220824' };
async function ask(url, query, form) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: `${ACCEPT[form]}, application/json` },
    body: JSON.stringify({ query }),
    signal: AbortSignal.timeout(PATIENCE),
  });
  const body = await response.text();
  if (!response.headers.get('content-type').startsWith('multipart/')) return [JSON.parse(body)];
  return body.split('\r\n---').map(part => part.split('\r\n\r\n')[1]).filter(Boolean).map(json => JSON.parse(json));
}

const folder = mkdtempSync(join(tmpdir(), 'ogive-incremental-'));
const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', chunk => chunks.push(chunk));
  request.on('end', async () => {
    const { query } = JSON.parse(Buffer.concat(chunks));
    const answer = await execute({ schema: buildSchema(sdl), document: parse(query), rootValue });
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
});
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
const subgraph = join(folder, 'shop.graphql');
writeFileSync(subgraph, sdl);
const supergraph = join(folder, 'supergraph.graphql');
execFileSync(binary, ['compose', `shop=${subgraph}`, '--url', `shop=http://127.0.0.1:${server.address().port}/`, '-o', supergraph], { stdio: 'pipe' });
const yaml = join(folder, 'ogive.yaml');
writeFileSync(yaml, 'http: { workers: 1 }\ninclude_subgraph_errors: { all: true }\nsupergraph: { stream_chunk_size: 100B }\n');
const child = spawn(binary, ['serve', '-c', yaml, '-s', supergraph, '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'pipe'] });
const url = await new Promise((resolve, reject) => {
  let said = '';
  const read = chunk => {
    said += chunk;
    const found = said.match(/http:\/\/127\.0\.0\.1:\d+/);
    if (found) resolve(`${found[0]}/graphql`);
  };
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  child.on('exit', code => reject(new Error(`ogive serve ended with ${code}: ${said}`)));
  setTimeout(() => reject(new Error(`no address: ${said}`)), PATIENCE).unref();
});

// The draft leaves open which of several groups with a value in common is told of it, and whether one is announced that has nothing
// else ("the GraphQL service may decide to not defer"): which is ready first decides. Such answers are counted; data and errors are equal.
let passed = 0, failed = 0, shared = 0, later = 0, announced = 0;
for (let n = 0; n < Number(operations); n++) {
  const query = `{ ${selections('Query', 0)} }`;
  const document = parse(query);
  for (const form of ['current', '2022']) {
    try {
      const is = await ask(url, query, form);
      const [ours, theirs] = [assemble(is, form), assemble(await reference(document, form), form)];
      later += is.length > 1;
      announced += ours.announced.length;
      if (isDeepStrictEqual(ours, theirs)) {
        passed++;
        continue;
      }
      const which = Object.keys(ours).find(key => !isDeepStrictEqual(ours[key], theirs[key]));
      if (which === 'announced') {
        shared++;
        continue;
      }
      throw new Error(`${which}\n  ogive:   ${text(ours[which])}\n  graphql: ${text(theirs[which])}`);
    } catch (error) {
      failed++;
      if (failed <= 5) console.log(`FAILED: ${form}: ${query}\n  ${error.message}`);
    }
  }
}
try {
  const { clients } = await import('./clients.mjs');
  await clients(url, (name, is, wanted) => {
    const holds = isDeepStrictEqual(is, wanted);
    holds ? passed++ : failed++;
    console.log(holds ? `ok: ${name}` : `FAILED: ${name}\n  is:     ${text(is)}\n  wanted: ${text(wanted)}`);
  });
} catch (error) {
  failed++;
  console.log(`FAILED: ${error.stack}`);
}
child.removeAllListeners('exit');
child.kill('SIGTERM');
server.close();
server.closeAllConnections();
rmSync(folder, { recursive: true });
if (shared * 4 > passed) failed++;
console.log(`${later} answers in parts, ${announced} groups and lists; ${shared} where groups that share values are announced otherwise`);
console.log(`test result: ${failed ? 'FAILED' : 'ok'}. ${passed} passed; ${failed} failed;`);
process.exitCode = failed ? 1 : 0;
