// Opens every page of the built documentation in a real browser, from files, as a reader without a server does: light and
// dark, on a desk and on a phone. No page may have a serious accessibility finding of axe, scroll sideways, load anything
// from another host or log an error. The search has to find a page, by keyboard alone.
// Usage: node site.mjs SITE CHROMIUM [FOLDER_FOR_SCREENSHOTS]
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [folder, program, screenshots] = process.argv.slice(2);
const site = resolve(folder);
const executablePath = execFileSync('which', [program], { encoding: 'utf8' }).trim();
const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
// Milliseconds that anything may take; a machine may be slow.
const PATIENCE = 120_000;
const GRAVE = ['serious', 'critical'];
const VIEWS = [
  { name: 'light', viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  { name: 'dark', viewport: { width: 1280, height: 900 }, colorScheme: 'dark' },
  { name: 'phone', viewport: { width: 390, height: 844 }, colorScheme: 'light' },
];

const pages = readdirSync(site, { recursive: true }).filter(name => name.endsWith('.html')).sort();
const address = name => pathToFileURL(join(site, name)).href;
let passed = 0;
let failed = 0;
const check = (name, wrong) => {
  passed += wrong.length === 0 ? 1 : 0;
  failed += wrong.length === 0 ? 0 : 1;
  if (wrong.length > 0) console.log(`FAILED: ${name}\n  ${wrong.join('\n  ')}`);
};

const findings = async page => {
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
  return violations.filter(({ impact }) => GRAVE.includes(impact))
    .map(({ id, impact, nodes }) => `${impact}: ${id}, ${nodes.length} times, first ${nodes[0].html.slice(0, 160)} (${nodes[0].failureSummary.replace(/\s+/g, ' ')})`);
};

const open = async (page, name) => {
  await page.goto(address(name));
  await page.addScriptTag({ path: axe });
};

// Types a search and goes to the first result, without a pointer.
const searches = async page => {
  await open(page, 'index.html');
  await page.keyboard.press('/');
  await page.keyboard.type('hot reload');
  await page.locator('#results a').first().waitFor();
  check('search: list of results', await findings(page));
  if (screenshots) await page.screenshot({ path: join(screenshots, 'search.png') });
  await page.keyboard.press('Enter');
  await page.waitForURL(url => !url.href.endsWith('/index.html'));
  check('search: the first result opens', page.url().includes('lifecycle.html#reloads') ? [] : [page.url()]);
};

const profile = mkdtempSync(join(tmpdir(), 'ogive-site-'));
const browser = await chromium.launch({ executablePath, timeout: PATIENCE, args: ['--no-sandbox', '--disable-gpu', '--allow-file-access-from-files', `--disk-cache-dir=${profile}`] });
try {
  for (const { name: view, ...options } of VIEWS) {
    const context = await browser.newContext(options);
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    const trouble = [];
    page.on('console', message => message.type() === 'error' && trouble.push(message.text()));
    page.on('pageerror', error => trouble.push(String(error)));
    page.on('request', request => request.url().startsWith('file:') || trouble.push(`loads ${request.url()}`));
    for (const name of pages) {
      await open(page, name);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      check(`${view}: ${name}`, [...await findings(page), ...(wide > 0 ? [`scrolls sideways by ${wide} pixels`] : []), ...trouble.splice(0)]);
      if (screenshots && ['index.html', 'limits.html', 'configuration.html'].includes(name)) {
        await page.screenshot({ path: join(screenshots, `${view}-${name}.png`) });
      }
    }
    await searches(page);
    check(`${view}: search`, trouble);
    await context.close();
  }
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
