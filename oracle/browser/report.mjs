// Looks at the report of a benchmark run in a real browser: light, dark and as wide as a phone. Nothing may be asked of
// any host, nothing may stick out of a phone's screen. Usage: node report.mjs RUN/report.html CHROMIUM [FOLDER for images]
import { execFileSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [report, program, folder] = process.argv.slice(2);
const executablePath = execFileSync('which', [program], { encoding: 'utf8' }).trim();
const browser = await chromium.launch({
  executablePath,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
let failed = 0;
let passed = 0;
const check = (name, holds) => {
  console.log(`${holds ? 'ok' : 'FAILED'}: ${name}`);
  holds ? (passed += 1) : (failed += 1);
};
const looks = [
  { name: 'light', colorScheme: 'light', viewport: { width: 1200, height: 1500 }, at: null },
  { name: 'dark', colorScheme: 'dark', viewport: { width: 1200, height: 1500 }, at: '#query' },
  { name: 'phone', colorScheme: 'light', viewport: { width: 390, height: 1400 }, at: '#query', deviceScaleFactor: 2 },
];
try {
  for (const { name, at, ...settings } of looks) {
    const page = await browser.newPage(settings);
    const trouble = [];
    page.on('console', message => message.type() === 'error' && trouble.push(message.text()));
    page.on('request', request => request.url().startsWith('file:') || trouble.push(request.url()));
    await page.goto(pathToFileURL(resolve(report)).href);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    check(`${name}: the page is ${width} wide on ${settings.viewport.width}`, width <= settings.viewport.width);
    const out = await page.evaluate(() => [...document.querySelectorAll('svg text')].filter(text => {
      const [box, chart] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
      return box.left < chart.left - 8 || box.right > chart.right + 8;
    }).map(text => text.textContent));
    check(`${name}: texts stay in their charts: ${out.slice(0, 3)}`, out.length === 0);
    check(`${name}: nothing is asked of other hosts, no errors: ${trouble}`, trouble.length === 0);
    if (at && await page.$(at)) await page.evaluate(to => document.querySelector(to).scrollIntoView(), at);
    if (folder) await page.screenshot({ path: join(folder, `bench-report-${name}.png`) });
    await page.close();
  }
} finally {
  await browser.close();
}
console.log(`test result: ${failed ? 'FAILED' : 'ok'}. ${passed} passed; ${failed} failed;`);
process.exit(failed ? 1 : 0);
