// Types the searches of search.md into the search of the built site, by the same files that a browser loads, and prints the
// first three results of each. With --check it fails if fewer searches than it demands are answered by the table of
// search-result.md, or if a synonym stands for words that no page has.
// Usage: node search.mjs SITE [--check]
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import vm from 'node:vm';

// Results that a reader looks at.
const SHOWN = 3;
// Searches of which the right page has to be among them.
const DEMANDED = 46;

const [site, option] = process.argv.slice(2);
const here = name => readFileSync(new URL(name, import.meta.url), 'utf8');
const rows = (text, columns) => text.split('\n')
  .map(line => line.split('|').slice(1, -1).map(cell => cell.trim()))
  .filter(cells => cells.length === columns && /^\d+$/.test(cells[0]));

const scripts = ['index.js', 'find.js'].map(name => readFileSync(join(site, name), 'utf8'));
const { find, unused } = vm.runInNewContext(`${scripts.join('\n')}
const index = new Index(pages, parts, stopWords, synonyms);
({
  find: (typed) => index.find(typed),
  // Words that synonyms.txt takes for words of the pages, and that no page has.
  unused: () => synonyms.flatMap(([, said]) => said).filter((text) => index.match(index.stemsOf(text), 1).size === 0),
});`);
const searches = rows(here('search.md'), 3).map(([number, typed, wanted]) => ({ number, typed: typed.slice(1, -1), wanted }));

if (option !== '--check') {
  for (const { number, typed, wanted } of searches) {
    console.log(`${number}. ${typed}\n     wanted: ${wanted}`);
    for (const { title, page, href } of find(typed).slice(0, SHOWN)) console.log(`     ${href}  (${title}, ${page})`);
  }
  process.exit();
}

// Addresses that were judged to be right, by the number of the search.
const right = new Map(rows(here('search-result.md'), 5).map(([number, , addresses]) => [number, [...addresses.matchAll(/`([^`]+)`/g)].map(([, address]) => address)]));
const missed = searches.filter(({ number, typed }) => !find(typed).slice(0, SHOWN).some(({ href }) => right.get(number)?.includes(href)));
for (const { number, typed } of missed) console.log(`not among the first ${SHOWN}: ${number}. ${typed}`);
const dead = unused();
for (const text of dead) console.log(`synonyms.txt: no part of a page has \`${text}\``);
const passed = searches.length - missed.length;
console.log(`${passed} of ${searches.length} searches are answered; ${DEMANDED} are demanded`);
process.exit(passed >= DEMANDED && dead.length === 0 ? 0 : 1);
