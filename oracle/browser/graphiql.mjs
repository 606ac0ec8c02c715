// Opens GraphiQL of `ogive demo` in a real browser: the schema explorer must list the schema, the demo query must run,
// and nothing may be asked of any other host. Usage: node graphiql.mjs OGIVE_BINARY CHROMIUM [SCREENSHOT.png]
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [ogive, program, screenshot] = process.argv.slice(2);
const executablePath = execFileSync('which', [program], { encoding: 'utf8' }).trim();
const demo = spawn(ogive, ['demo', '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'inherit'] });
const url = await new Promise((resolve, reject) => {
  let text = '';
  demo.stdout.on('data', chunk => {
    text += chunk;
    const found = text.match(/GraphiQL\s+(http:\S+)/);
    if (found) resolve(found[1]);
  });
  demo.on('exit', code => reject(new Error(`the demo ended with ${code}: ${text}`)));
});

const profile = mkdtempSync(join(tmpdir(), 'ogive-browser-'));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath,
  viewport: { width: 1500, height: 900 },
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
let failed = 0;
const check = (name, holds) => {
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
  check(`nothing is asked of other hosts: ${[...hosts]}`, hosts.size === 1 && hosts.has(new URL(url).host));
  check(`no errors in the console: ${trouble}`, trouble.length === 0);
  if (screenshot) await page.screenshot({ path: screenshot });
} catch (error) {
  check(error.message, false);
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
  demo.removeAllListeners('exit');
  demo.kill('SIGTERM');
}
console.log(`test result: ${failed ? 'FAILED' : 'ok'}. ${4 - failed} passed; ${failed} failed;`);
process.exit(failed ? 1 : 0);
