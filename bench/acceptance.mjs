// The table of bench/acceptance.sh from its results: node acceptance.mjs FOLDER PART..
// FOLDER has a folder for each part that was ever measured: of `ogive bench run`, with `facts.txt` in some of them. PARTs
// are those that were measured now.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder, ...now] = process.argv.slice(2);
const parts = ['query', 'sharing', 'big', 'many', 'saturation', 'facts'].filter(part => existsSync(join(folder, part, 'campaign.json')));
const lines = (part, file) => (existsSync(join(folder, part, file)) ? readFileSync(join(folder, part, file), 'utf8').split('\n').filter(Boolean) : []);
const runs = parts.flatMap(part => lines(part, 'results.jsonl').map(line => JSON.parse(line)));
const facts = Object.fromEntries(parts.flatMap(part => lines(part, 'facts.txt')).map(line => line.split(' ')).map(([k, v]) => [k, Number(v)]));
const campaigns = Object.fromEntries(parts.map(part => [part, JSON.parse(lines(part, 'campaign.json').join('\n'))]));

const MIB = 2 ** 20;
/** How a number is had from a run; without a load there is none. */
const METRICS = {
  perCore: run => run.load.answered / run.usage.cpu_seconds,
  cpus: run => run.usage.cpu_seconds / run.usage.wall_seconds,
  p50: run => run.load.latency.p50 / 1e3,
  subgraphs: run => run.subgraphs.per_request,
  rss: run => run.usage.rss_peak / MIB,
  start: run => median(run.starts_ms),
};

function median(values) {
  const sorted = [...values].sort((a, b) => a - b), middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
/** Three digits. */
function digits(value) {
  if (!Number.isFinite(value)) return String(value);
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(3)));
}
function spread(values, unit = '') {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const range = values.length > 1 ? ` (${digits(low)}–${digits(high)})` : '';
  return `${digits(median(values))}${unit}${range}`;
}
/** Why a gateway's numbers do not count, if so. */
function trouble(scenario, gateway) {
  const of = runs.filter(run => run.scenario === scenario && run.gateway === gateway);
  if (!of.some(run => run.round > 0)) return of[0]?.reason ?? 'was not run';
  const bad = of.find(run => run.verdict !== 'ok');
  if (bad) return `${bad.verdict}: ${bad.reason.split('\n')[0]}`;
  const lost = of.find(run => run.load && run.load.failed + run.load.unfinished > 0.01 * run.load.answered);
  return lost && `${lost.load.failed + lost.load.unfinished} of ${lost.load.answered} requests failed or were late`;
}
/** Values by round. */
function values(scenario, gateway, metric) {
  const of = runs.filter(run => run.scenario === scenario && run.gateway === gateway && run.round > 0);
  return new Map(of.map(run => [run.round, METRICS[metric](run)]));
}

let met = 0;
const rows = [];
/** `measured` is what counts; `isMet` is undefined where nothing is required. */
function row(what, text, required, isMet, remark = '') {
  if (isMet) met++;
  rows.push({ what, text, required, isMet, remark });
}
/** One number of one gateway against a limit. */
function absolute(what, scenario, gateway, metric, unit, limit, remark = '') {
  const why = trouble(scenario, gateway);
  const required = limit === undefined ? '' : `≤ ${digits(limit)}${unit}`;
  if (why) return row(what, 'no number', required, limit === undefined ? undefined : false, why);
  const all = [...values(scenario, gateway, metric).values()];
  row(what, spread(all, unit), required, limit === undefined ? undefined : median(all) <= limit, remark);
}
/** One gateway by another, round by round; `sign` is `≥` or `≤`. */
function ratio(what, scenario, [one, other], metric, unit, sign, limit) {
  const required = limit === undefined ? '' : `${sign} ${digits(limit)}`;
  const why = [one, other].map(gateway => [gateway, trouble(scenario, gateway)]).find(([, why]) => why);
  if (why) return row(what, 'no number', required, limit === undefined ? undefined : false, why.join(': '));
  const [a, b] = [one, other].map(gateway => values(scenario, gateway, metric));
  const pairs = [...a.keys()].filter(round => b.has(round)).map(round => a.get(round) / b.get(round));
  const value = median(pairs);
  let remark = `${digits(median([...a.values()]))} beside ${digits(median([...b.values()]))}${unit}`;
  const both = metric => [one, other].map(gateway => digits(median([...values(scenario, gateway, metric).values()]))).join(' and ');
  if (metric === 'perCore') remark += `; ${both('cpus')} of the core used`;
  if (metric !== 'p50') remark += `; p50 ${both('p50')} ms`;
  row(what, spread(pairs), required, limit === undefined ? undefined : sign === '≥' ? value >= limit : value <= limit, remark);
}
/** What comes on top of the time subgraphs take, at a rate that keeps nobody waiting. */
function onTop(what, scenario, gateway, waves, limit) {
  const required = `≤ ${digits(limit)} ms`;
  const why = trouble(scenario, gateway);
  if (why) return row(what, 'no number', required, false, why);
  const all = [...values(scenario, gateway, 'p50').values()].map(value => value - waves * facts.held);
  row(what, spread(all, ' ms'), required, median(all) <= limit, `above ${waves} × the ${digits(facts.held)} ms in which a client has an answer a subgraph holds for 10`);
}
/** One number of facts.txt. */
function fact(what, value, unit, limit) {
  row(what, `${digits(value)}${unit}`, `≤ ${digits(limit)}${unit}`, value <= limit);
}
/** Requests and waves of one query. */
function waves(mode, requests, most) {
  const [n, m] = [facts[`requests_${mode}`], facts[`waves_${mode}`]];
  row(`query: on the wire, \`${mode}\``, `${digits(n)} requests in ${m} waves`, `≤ ${requests} in ≤ ${most}`, n <= requests && m <= most);
}

const hive = 'hive-router';
/** The rows of each part. */
const TABLE = {
  query() {
    waves('all', 4, 2);
    waves('entities', 6, 4);
    ratio('query: requests per core-second, × Hive Router', 'query-flat-out', ['ogive', hive], 'perCore', '/s', '≥', 3);
    ratio('query: the same, `reuse: entities`', 'query-flat-out', ['ogive-entities', hive], 'perCore', '/s', '≥');
    for (const [mode, gateway, waves] of [['all', 'ogive', 2], ['entities', 'ogive-entities', 4]]) {
      absolute(`query: p50 at 50 requests/s, \`${mode}\``, 'query-calm', gateway, 'p50', ' ms', waves * 10 + 1.5);
      onTop(`query: the same, the gateway's own part`, 'query-calm', gateway, waves, 1.5);
    }
    absolute('query: p50 at 50 requests/s, Hive Router', 'query-calm', hive, 'p50', ' ms');
  },
  sharing() {
    absolute('deduplication: subgraph requests per request', 'sharing-requests', 'ogive', 'subgraphs', '', 0.6);
    absolute('deduplication: the same, Hive Router', 'sharing-requests', hive, 'subgraphs', '');
    absolute('deduplication: whole operations shared', 'sharing-operations', 'ogive', 'subgraphs', '', 0.25);
    absolute('deduplication: the same, Hive Router', 'sharing-operations', hive, 'subgraphs', '');
  },
  big() {
    ratio('big-response: p50, × Hive Router', 'big-response', ['ogive', hive], 'p50', ' ms', '≤', 0.5);
    if (facts.big_ratio) {
      const { big_user: user, big_system: system, big_plain: plain, big_ratio: value } = facts;
      row('big-response: user CPU per request, × validate and copy', digits(value), '≤ 2', value <= 2,
        `${digits(user)} ms of the whole process (and ${digits(system)} ms in the kernel) beside ${digits(plain)} ms for the same bytes`);
    }
    absolute('big-response: peak RSS, 1 client', 'big-response', 'ogive', 'rss', ' MiB', 40);
    absolute('big-response: peak RSS, 10 clients, held 100 ms', 'big-response-held', 'ogive', 'rss', ' MiB', 150);
    absolute('big-response: the same, Hive Router', 'big-response-held', hive, 'rss', ' MiB');
  },
  many() {
    ratio('many-plans, planned once: p50, × Hive Router', 'many-plans', ['ogive', hive], 'p50', ' ms', '≤', 0.5);
    absolute('many-plans, planned anew: p50', 'many-plans-cold', 'ogive', 'p50', ' ms', 4);
    ratio('many-plans, planned anew: p50, × Hive Router', 'many-plans-cold', ['ogive', hive], 'p50', ' ms', '≤');
  },
  saturation() {
    for (const connections of [50, 200, 1000]) {
      const [name, scenario] = [`saturation, ${digits(connections)} connections: per core-second`, `saturation-${connections}`];
      ratio(`${name}, × nginx`, scenario, ['ogive', 'nginx'], 'perCore', '/s', '≥', 0.6);
      ratio(`${name}, × Hive Router`, scenario, ['ogive', hive], 'perCore', '/s', '≥', 2);
    }
  },
  facts() {
    absolute('start to first answer', 'cold-start', 'ogive', 'start', ' ms', 30);
    absolute('start to first answer, Hive Router', 'cold-start', hive, 'start', ' ms');
    fact('resident, idle, nothing asked yet', facts.idle / MIB, ' MiB', 15);
    fact('resident, idle, twelve seconds after its answers', facts.idle_after / MIB, ' MiB', 15);
    fact('`dist` binary', facts.binary / 1e6, ' MB', 40);
  },
};
for (const part of parts) TABLE[part]();

const judged = rows.filter(row => row.isMet !== undefined);
const { machine, rounds } = campaigns[now[0]];
const versions = ['ogive', hive].map(name => parts.map(part => campaigns[part].gateways[name]?.version).find(Boolean)).filter(Boolean).join(', ');
const earlier = parts.filter(part => !now.includes(part)).map(part => `\`${part}\` (${campaigns[part].started})`);
console.log(`\`bash bench/acceptance.sh\`: ${machine.cpu}, ${machine.cpus} CPUs, one for the gateway; ${versions}; ${rounds} interleaved rounds; median (smallest–largest); load average before ${digits(machine.load_average)}. ${met} of ${judged.length} met.${earlier.length ? ` Measured before: ${earlier.join(', ')}.` : ''}\n`);
console.log('| what | measured | required | | |\n|---|---:|---:|---|---|');
for (const { what, text, required, isMet, remark } of rows) {
  const word = isMet === undefined ? '' : isMet ? 'met' : '**missed**';
  console.log(`| ${what} | ${text} | ${required} | ${word} | ${remark.replaceAll('|', '\\|')} |`);
}
if (parts.includes('saturation')) console.log(`
In \`saturation\`, wrk and the subgraphs have one CPU and the gateway has the other; who needs less of it than they do is never busy all the time, so that answers per second of its CPU are compared, not answers per second.`);
