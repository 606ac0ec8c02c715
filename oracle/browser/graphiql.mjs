// Opens GraphiQL in a real browser. Of `ogive demo`: the schema explorer must list the schema, the demo query must run,
// its plan and its trace have a tab, and nothing may be asked of any other host. Of `ogive dev`: a changed subgraph is seen
// without a click, and the events of a subscription are shown until it is stopped. Of `ogive serve`: it is explained that introspection is
// off, and a subscription is refused in plain words.
// Usage: node graphiql.mjs OGIVE_BINARY CHROMIUM [SCREENSHOT.png]
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [ogive, program, screenshot] = process.argv.slice(2);
const executablePath = execFileSync('which', [program], { encoding: 'utf8' }).trim();
const running = [];
// Milliseconds that anything may take; a machine may be slow.
const PATIENCE = 120_000;
// Starts ogive and gives the first URL behind `word` in what it prints.
const start = (args, word) => new Promise((resolve, reject) => {
  const child = spawn(ogive, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  running.push(child);
  let text = '';
  const read = chunk => {
    text += chunk;
    const found = text.match(new RegExp(`${word}[^\\n]*?(http://[\\d.:]+/?)`));
    if (found) resolve(found[1]);
  };
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  child.on('exit', code => reject(new Error(`ogive ${args[0]} ended with ${code}: ${text}`)));
});
const url = await start(['demo', '--listen', '127.0.0.1:0'], 'GraphiQL');
const folder = mkdtempSync(join(tmpdir(), 'ogive-graphs-'));
const subgraph = join(folder, 'clock.graphql');
const sdl = field => `type Query { ${field}: Int }\ntype Subscription { tick: Int }\n`;
writeFileSync(subgraph, sdl('early'));

const profile = mkdtempSync(join(tmpdir(), 'ogive-browser-'));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath,
  timeout: PATIENCE,
  viewport: { width: 1500, height: 900 },
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
browser.setDefaultTimeout(PATIENCE);
let failed = 0;
let passed = 0;
const check = (name, holds) => {
  passed += holds ? 1 : 0;
  console.log(`${holds ? 'ok' : 'FAILED'}: ${name}`);
  failed += holds ? 0 : 1;
};
try {
  const page = await browser.newPage();
  const trouble = [];
  const hosts = new Set();
  page.on('console', message => message.type() === 'error' && trouble.push(message.text()));
  page.on('requestfailed', request => trouble.push(`failed: ${request.url()}`));
  page.on('request', request => hosts.add(new URL(request.url()).host));
  await page.goto(url);
  await page.click('button[aria-label*="Documentation"]');
  await page.waitForSelector('.graphiql-doc-explorer');
  await page.waitForFunction(() => document.querySelector('.graphiql-doc-explorer').innerText.includes('PromotionSubject'));
  check('the schema explorer lists the schema', true);
  await page.click('button[aria-label*="Execute"]');
  await page.waitForFunction(() => document.querySelector('.result-window')?.innerText.includes('topProducts'));
  check('the demo query runs', true);
  const shown = await page.innerText('.result-window');
  check('plan and trace are not in the result', !shown.includes('apolloQueryPlan') && !shown.includes('ogiveTrace'));
  await page.click('button[aria-label*="Plan and trace"]');
  await page.waitForSelector('.ogive-plan');
  check('the plan has a tab', (await page.innerText('.ogive-plan')).includes('QueryPlan'));
  check('and so has the trace', (await page.innerText('.ogive-trace')).includes('execute'));
  check(`nothing is asked of other hosts: ${[...hosts]}`, hosts.size === 1 && hosts.has(new URL(url).host));
  check(`no errors in the console: ${trouble}`, trouble.length === 0);
  if (screenshot) await page.screenshot({ path: screenshot });

  const dev = await start(['dev', `clock=${subgraph}`, '--listen', '127.0.0.1:0'], 'GraphiQL:');
  await page.goto(`${dev}?query=${encodeURIComponent('subscription { tick }')}`);
  await page.click('button[aria-label*="Documentation"]');
  await page.click('.graphiql-doc-explorer a:has-text("Query")');
  await page.waitForFunction(() => document.querySelector('.graphiql-doc-explorer').innerText.includes('early'));
  writeFileSync(subgraph, sdl('late'));
  await page.waitForFunction(() => document.querySelector('.graphiql-doc-explorer').innerText.includes('late'));
  check('a changed schema is fetched without a click', true);
  await page.click('button[aria-label*="Execute"]');
  await page.waitForFunction(() => /"tick": \d+/.test(document.querySelector('.result-window')?.innerText));
  check('the events of a subscription are shown', true);
  const stopped = page.waitForEvent('requestfailed', request => request.headers().accept === 'text/event-stream');
  await page.click('button[aria-label*="Stop"]');
  await stopped;
  check('the stream ends when it is stopped', true);

  const supergraph = join(folder, 'supergraph.graphql');
  execFileSync(ogive, ['compose', `clock=${subgraph}`, '--url', 'clock=http://127.0.0.1:1/', '-o', supergraph]);
  const serve = await start(['serve', '-s', supergraph, '--listen', '127.0.0.1:0'], 'serving');
  await page.goto(new URL('/', serve).href);
  await page.waitForSelector('#no-schema:visible');
  check('it is explained that introspection is off', (await page.innerText('#no-schema')).includes('supergraph.introspection'));
  await page.click('button[aria-label*="Documentation"]');
  check('and no error is shown for it', !(await page.innerText('body')).includes('Error fetching schema'));
  await page.goto(new URL(`/?query=${encodeURIComponent('subscription { tick }')}`, serve).href);
  await page.waitForSelector('.result-window');
  await page.click('button[aria-label*="Execute"]');
  await page.waitForFunction(() => document.querySelector('.result-window')?.innerText.includes('SUBSCRIPTIONS_NOT_SUPPORTED'));
  check('a subscription is refused in plain words where there are none', true);
} catch (error) {
  check(error.message, false);
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
  for (const child of running) {
    child.removeAllListeners('exit');
    child.kill('SIGTERM');
  }
}
console.log(`test result: ${failed ? 'FAILED' : 'ok'}. ${passed} passed; ${failed} failed;`);
process.exit(failed ? 1 : 0);
