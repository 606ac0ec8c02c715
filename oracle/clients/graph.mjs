// Starts what the clients talk to: the demo's subgraphs (`ogive mock`), subgraphs of our own, gateways (`ogive serve`).
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Milliseconds that anything may take; a step that takes longer has failed. */
export const PATIENCE = 120_000;

const root = fileURLToPath(new URL('../../', import.meta.url));
export const folder = mkdtempSync(join(tmpdir(), 'ogive-clients-'));
const children = [];
const servers = [];

/** Starts `ogive ARGUMENTS..` and waits until it says where it listens. */
async function start(binary, ...args) {
  const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  return await new Promise((resolve, reject) => {
    let text = '';
    const timer = setTimeout(() => reject(new Error(`ogive ${args[0]} does not say where it listens: ${text}`)), PATIENCE);
    const read = chunk => {
      text += chunk;
      const found = text.match(/http:\/\/127\.0\.0\.1:\d+/);
      if (!found) return;
      clearTimeout(timer);
      resolve(found[0]);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.on('error', reject);
    child.on('exit', code => reject(new Error(`ogive ${args.join(' ')} ended with ${code}: ${text}`)));
  });
}

/** A server of our own on a port of its own; `answer(request, body)` gives `[status, headers, body]`. */
export async function serve(answer) {
  const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', chunk => chunks.push(chunk));
    request.on('end', () => {
      const [status, headers, body] = answer(request, Buffer.concat(chunks));
      response.writeHead(status, headers).end(body);
    });
  });
  servers.push(server);
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${server.address().port}`;
}

const json = value => [200, { 'content-type': 'application/json' }, JSON.stringify(value)];

/** What a file was when it came: its size and the beginning of its SHA-256. */
export const summary = bytes => `${bytes.length} ${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}`;

/** A subgraph that answers `storeA` and `storeMany` with summaries of the files that came for it. */
function receive(request, body) {
  const [, boundary] = /boundary="?([^";]+)/.exec(request.headers['content-type'] ?? '') ?? [];
  if (!boundary) return json({ errors: [{ message: 'no multipart body' }] });
  const parts = new Map();
  for (const part of body.toString('latin1').split(`--${boundary}`).slice(1, -1)) {
    const end = part.indexOf('\r\n\r\n');
    const [, name] = /name="?([^";\r\n]+)/i.exec(part.slice(0, end));
    parts.set(name, Buffer.from(part.slice(end + 4, -2), 'latin1'));
  }
  const { query } = JSON.parse(parts.get('operations'));
  const files = Object.keys(JSON.parse(parts.get('map'))).map(key => summary(parts.get(key)));
  return json({ data: /storeMany/.test(query) ? { storeMany: files } : { storeA: files[0] } });
}

/** A gateway with a configuration. */
async function gateway(binary, name, supergraph, yaml) {
  const file = join(folder, `${name}.yaml`);
  writeFileSync(file, yaml);
  return await start(binary, 'serve', '-c', file, '-s', join(root, supergraph), '--listen', '127.0.0.1:0');
}

/** Starts everything. `page` is the origin whose pages may ask, `knowing` what lets in members only. */
export async function graph(binary, page, knowing) {
  const mock = await start(binary, 'mock', '--config', join(root, 'examples/demo/mock.yaml'), '--listen', '127.0.0.1:0');
  const refusing = await serve(() => json({ data: null, errors: [{ message: 'the warehouse is closed', extensions: { code: 'CLOSED' } }] }));
  const receiving = await serve(receive);
  const urls = inventory => ['accounts', 'products', 'reviews'].map(n => `  ${n}: ${mock}/graphql/${n}\n`).join('') + `  inventory: ${inventory}\n`;
  const demo = more => `http: { workers: 1 }\noverride_subgraph_url:\n${urls(`${mock}/graphql/inventory`)}${more}`;
  const manifest = join(folder, 'manifest.json');
  const { operations, list } = trusted();
  writeFileSync(manifest, JSON.stringify(list));
  const supergraph = 'examples/demo/supergraph.graphql';
  const [usual, partial, required, uploads, members] = await Promise.all([
    gateway(binary, 'usual', supergraph, demo(
      `batching: { enabled: true }\ncors:\n  expose_headers: [x-shown]\n  policies:\n    - { origins: ["${page}"], allow_credentials: true }\n`,
    )),
    gateway(binary, 'partial', supergraph, `http: { workers: 1 }\ninclude_subgraph_errors: { all: true }\noverride_subgraph_url:\n${urls(refusing)}`),
    gateway(binary, 'required', supergraph, demo(`persisted_queries: { enabled: true, mode: require, require_id: true, local_manifests: [${manifest}] }\n`)),
    gateway(binary, 'uploads', 'crates/e2e/tests/it/uploads.graphql',
      `file_uploads: { enabled: true }\noverride_subgraph_url: { a: "${receiving}", b: "${receiving}" }\n`),
    gateway(binary, 'members', supergraph, demo(knowing)),
  ]);
  /** Requests that a subgraph has had so far. */
  const asked = async name => {
    const stats = await (await fetch(`${mock}/stats`)).json();
    return (stats.subgraphs ?? stats)[name].requests;
  };
  return { usual: `${usual}/graphql`, partial: `${partial}/graphql`, required: `${required}/graphql`, uploads: `${uploads}/graphql`, members: `${members}/graphql`, asked, operations };
}

/** A subgraph that has events, and a gateway before it. `isLeft()` says whether nobody is subscribed, once that is so. */
export async function subscribed(binary, page) {
  const sdl = 'type Query { ping: Int } type Mutation { ping: Int } type Subscription { count(to: Int!): Int refused: Int forever: Int }';
  const open = new Set();
  const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', chunk => chunks.push(chunk));
    request.on('end', () => {
      const { query, variables } = JSON.parse(Buffer.concat(chunks));
      const answer = value => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
      if (/refused/.test(query)) return answer({ errors: [{ message: 'it is forbidden' }] });
      if (!/subscription/.test(query)) return answer({ data: { ping: /mutation/.test(query) ? 2 : 1 } });
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const send = data => response.write(`event: next\ndata: ${JSON.stringify({ data })}\n\n`);
      if (/forever/.test(query)) {
        open.add(response);
        response.on('close', () => open.delete(response));
        return send({ forever: 1 });
      }
      const to = Number(/to: ?(\d)/.exec(query)?.[1] ?? Object.values(variables)[0]);
      for (let count = 1; count <= to; count++) send({ count });
      response.end('event: complete\ndata:\n\n');
    });
  });
  servers.push(server);
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  const schema = join(folder, 'events.graphql');
  writeFileSync(schema, sdl);
  const supergraph = join(folder, 'events-supergraph.graphql');
  execFileSync(binary, ['compose', `events=${schema}`, '--url', `events=http://127.0.0.1:${server.address().port}/`, '-o', supergraph], { stdio: 'pipe' });
  const yaml = join(folder, 'events.yaml');
  writeFileSync(yaml, `http: { workers: 1 }\nsubscription: { enabled: true }\ninclude_subgraph_errors: { all: true }\ncors: { methods: [GET, POST, PUT, DELETE, OPTIONS], policies: [ { origins: ["${page}"] } ] }\n`);
  const url = `${await start(binary, 'serve', '-c', yaml, '-s', supergraph, '--listen', '127.0.0.1:0')}/graphql`;
  const isLeft = async () => {
    for (const since = Date.now(); open.size > 0;) {
      if (Date.now() - since > PATIENCE) return false;
      await new Promise(resolve => setImmediate(resolve));
    }
    return true;
  };
  return { url, isLeft };
}

/** Ids of documents that clients may ask for, and the manifest in Apollo's form. */
function trusted() {
  const body = 'query Me {\n  me {\n    name\n    __typename\n  }\n}';
  const id = createHash('sha256').update(body).digest('hex');
  const list = { format: 'apollo-persisted-query-manifest', version: 1, operations: [{ id, name: 'Me', type: 'query', body }] };
  return { operations: { Me: id }, list };
}

/** Ends everything that was started. */
export function stop() {
  for (const child of children) {
    child.removeAllListeners('exit');
    child.kill('SIGTERM');
  }
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
  rmSync(folder, { recursive: true, force: true });
}

/** `fetch` that writes down what was sent: method, query string, body, status. */
export function recording() {
  const sent = [];
  const fetching = async (url, options = {}) => {
    const answer = await fetch(url, options);
    const at = new URL(url);
    const body = typeof options.body === 'string' ? JSON.parse(options.body) : options.body;
    sent.push({ method: options.method ?? 'GET', search: at.searchParams, body, status: answer.status });
    return answer;
  };
  return { fetch: fetching, sent };
}
