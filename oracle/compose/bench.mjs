// Times composition beside the npm implementations: one cold process each, satisfiability included, processor time
// (at most `--limit` seconds of it) and peak memory; prints a Markdown table.
//   cargo build --release -p ogive-compose --example compose
//   node bench.mjs ../../target/release/examples/compose [--runs 5] [--limit 60] [FILE.json...]
// Graphs: `clean N` (N subgraphs of about 100 types), `hub N` (N subgraphs sharing five entities under rotating
// keys), both from the example's generators, and any files with a JSON array of `{name, url, sdl}`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

const args = process.argv.slice(2);
const option = (name, fallback) => {
  const at = args.indexOf(name);
  return at < 0 ? fallback : Number(args.splice(at, 2)[1]);
};
const [runs, limit] = [option("--runs", 5), option("--limit", 60)];
const [ours, ...files] = args;
if (!ours) throw new Error("usage: bench.mjs PATH/TO/examples/compose [FILE.json...]");
const here = new URL(".", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "ogive-bench-"));

const graphs = files.map((file) => ({ name: basename(file, ".json"), text: readFileSync(file, "utf8") }));
for (const [kind, n] of [["clean", 10], ["clean", 100], ["hub", 30], ["hub", 100]]) {
  const text = spawnSync(ours, ["--set", `--${kind}`, String(n)], { maxBuffer: 1 << 30 }).stdout.toString();
  graphs.push({ name: `${kind} ${n}`, text });
}

/** Least processor milliseconds and most megabytes of some runs. */
function measure(command, times) {
  let [cpu, peak] = [Infinity, 0];
  for (let i = 0; i < times; i++) {
    const script = `ulimit -t ${limit}; TIMEFORMAT='cpu %U %S'; time /usr/bin/time -f 'rss %M' ${command} > /dev/null`;
    const run = spawnSync("bash", ["-c", script], { encoding: "utf8" });
    const [, user, system] = /cpu ([\d.]+) ([\d.]+)/.exec(run.stderr) ?? [];
    if (1000 * (Number(user) + Number(system)) >= 990 * limit) return `> ${limit} s`;
    const [, rss] = /rss (\d+)/.exec(run.stderr) ?? [];
    if (run.status !== 0 || !rss) return "fails";
    cpu = Math.min(cpu, 1000 * (Number(user) + Number(system)));
    peak = Math.max(peak, Number(rss) / 1024);
  }
  return `${cpu < 100 ? cpu.toFixed(0) : (cpu / 10).toFixed(0) * 10} ms, ${peak.toFixed(0)} MB`;
}

console.log("| graph | subgraphs, KB | Ogive | @apollo/composition 2.14.4 | @theguild/federation-composition 0.27.0 |\n|---|---|---|---|---|");
for (const { name, text } of graphs) {
  const set = JSON.parse(text);
  const path = join(folder, "set.json");
  const line = join(folder, "line.json");
  writeFileSync(path, text);
  writeFileSync(line, JSON.stringify(set) + "\n");
  const size = set.reduce((n, s) => n + Buffer.byteLength(s.sdl), 0);
  // The reference needs a larger stack for the larger graphs.
  const node = `node --stack-size=60000 --max-old-space-size=6000 ${here}compose.mjs`;
  const stack = "ulimit -s unlimited 2>/dev/null;";
  const row = [
    measure(`${ours} ${path}`, runs),
    measure(`bash -c '${stack} ${node} < ${line}'`, 1),
    measure(`bash -c '${stack} ${node} --guild < ${line}'`, 1),
  ];
  console.log(`| ${name} | ${set.length}, ${Math.round(size / 1000)} | ${row.join(" | ")} |`);
}
rmSync(folder, { recursive: true });
