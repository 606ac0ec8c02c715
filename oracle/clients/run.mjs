// Clients that are in use, against `ogive serve`: Apollo Client, also with tokens that end, urql, Relay, graphql-ws,
// subscriptions-transport-ws, graphql-sse, curl, a browser.
// Usage: node run.mjs OGIVE_BINARY [CHROMIUM]
// What is not installed is left out, and said to be. Ends with `test result: ..`, and with status 1 if anything failed.
import { execFileSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { graph, serve, stop, subscribed } from './graph.mjs';
import { issuer, knowing, login } from './login.mjs';

const [binary, program = 'chromium'] = process.argv.slice(2);
if (!binary) {
  console.error('usage: node run.mjs OGIVE_BINARY [CHROMIUM]');
  process.exit(2);
}
let passed = 0, failed = 0;
/** Compares what came with what has to come. */
function check(name, is, wanted) {
  const holds = isDeepStrictEqual(is, wanted);
  holds ? passed++ : failed++;
  console.log(holds ? `ok: ${name}` : `FAILED: ${name}\n  is:     ${JSON.stringify(is)}\n  wanted: ${JSON.stringify(wanted)}`);
}
const where = name => {
  try {
    return execFileSync('which', [name], { encoding: 'utf8' }).trim();
  } catch {
    return null;
  }
};

try {
  const home = await serve(() => [200, { 'content-type': 'text/html' }, '<!doctype html><title>a page</title>']);
  const provider = await issuer();
  const served = { ...await graph(binary, home, knowing(provider)), provider };
  const events = await subscribed(binary, home);
  const steps = [
    ['Apollo Client', null, async () => (await import('./apollo.mjs')).apollo(served, check)],
    ['login', null, async () => login(served, check)],
    ['urql', null, async () => (await import('./urql.mjs')).urql(served, check)],
    ['subscriptions', null, async () => (await import('./streams.mjs')).streams(events, check)],
    ['curl', 'curl', async () => (await import('./streams.mjs')).curled(events, check)],
    ['curl', 'curl', async () => (await import('./curl.mjs')).curls(served, check)],
    ['browser', program, async () => (await import('./browser.mjs')).browser(served, events, home, where(program), check)],
  ];
  for (const [name, needs, run] of steps) {
    if (needs && !where(needs)) {
      const why = `clients: ${name}: ${needs} is not installed\n`;
      process.stdout.write(`LEFT OUT: ${why}`);
      // `cargo xtask test` counts it.
      if (process.env.OGIVE_LEFT_OUT) appendFileSync(process.env.OGIVE_LEFT_OUT, why);
      continue;
    }
    try {
      await run();
    } catch (error) {
      check(`${name}: ${error.stack}`, false, true);
    }
  }
} catch (error) {
  check(error.stack, false, true);
} finally {
  stop();
}
console.log(`test result: ${failed ? 'FAILED' : 'ok'}. ${passed} passed; ${failed} failed;`);
process.exitCode = failed ? 1 : 0;
