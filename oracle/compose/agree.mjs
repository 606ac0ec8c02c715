// Compares this project's composition with the reference on generated sets.
//   cargo run -q --example generate -- 1 5000 > sets.jsonl
//   node --stack-size=4000 compose.mjs < sets.jsonl > reference.jsonl
//   cargo run -q --example compose -- --lines < sets.jsonl > ours.jsonl
//   node agree.mjs sets.jsonl reference.jsonl ours.jsonl
// Verdicts, multisets of codes with coordinates, hints (of accepted sets) and sorted supergraphs are compared.
import { readFileSync } from "node:fs";
import { parse, print, visit } from "graphql";

const [setsPath, referencePath, oursPath, shown = "20"] = process.argv.slice(2);
const lines = (path) => readFileSync(path, "utf8").trim().split("\n").map((l) => JSON.parse(l));
const [sets, reference, ours] = [setsPath, referencePath, oursPath].map(lines);

const LISTS = ["directives", "fields", "values", "types", "interfaces", "arguments", "operationTypes", "locations"];
function normal(sdl) {
  if (!sdl) return "";
  const sorted = visit(parse(sdl, { noLocation: true }), {
    leave(node) {
      const copy = { ...node };
      if (copy.description) copy.description = { ...copy.description, block: true };
      for (const list of LISTS) if (Array.isArray(copy[list])) copy[list] = [...copy[list]].sort((a, b) => (print(a) < print(b) ? -1 : 1));
      if (node.kind === "Argument" && node.name.value === "import" && copy.value.values)
        copy.value = { ...copy.value, values: [...copy.value.values].sort((a, b) => (print(a) < print(b) ? -1 : 1)) };
      return copy;
    },
  });
  return sorted.definitions.map((d) => print(d)).sort().join("\n\n");
}

// The reference has no coordinates on errors; its messages quote the element first.
function about(message) {
  const text = message.replace(/^\[\w+\] /, "").replace(/^Source and destination subgraphs "\w+" are the same for overridden field /, "");
  return /^Argument "(\w+\.\w+\(\w+:\))"/.exec(text)?.[1] ?? /"(@?\w+(?:\.\w+)?(?:\(\w+:\))?)"/.exec(text)?.[1] ?? "";
}
function unsatisfied(message) {
  return /field "(\w+\.\w+)"/.exec(message)?.[1] ?? "";
}
const key = (e) => e.code === "INVALID_GRAPHQL" ? "INVALID_GRAPHQL " : `${e.code} ${e.code === "SATISFIABILITY_ERROR" ? unsatisfied(e.message) : about(e.message)}`;
const count = { sets: sets.length, rejected: 0, crashed: 0, verdict: 0, codes: 0, coordinates: 0, hints: 0, supergraph: 0 };
let printed = 0;
function differ(kind, i, theirs, our) {
  count[kind] += 1;
  if (printed++ < Number(shown)) console.log(`#${i} ${kind}\n  reference: ${JSON.stringify(theirs)}\n  ours:      ${JSON.stringify(our)}`);
}
sets.forEach((_, i) => {
  const [r, o] = [reference[i], ours[i]];
  if (!r.errors.length && !r.supergraph) return void (count.crashed += 1);
  if (r.errors.length) count.rejected += 1;
  if (!r.errors.length !== !o.errors.length) return differ("verdict", i, r.errors.map((e) => [e.code, e.message]), o.errors.map((e) => [e.code, e.message]));
  const codes = (x) => [...new Set(x.errors.map((e) => e.code))].sort().join();
  if (codes(r) !== codes(o)) return differ("codes", i, r.errors.map((e) => [e.code, e.message]), o.errors.map((e) => [e.code, e.message]));
  if (r.errors.length) {
    // One field that cannot be reached fails several queries: roots of failures are compared as sets.
    const theirs = [...new Set(r.errors.map(key))].sort();
    // Ours are grouped by cause; the other fields of a group are in a note.
    const also = (e) => e.notes.filter((n) => n.startsWith("the same keeps")).flatMap((n) => [...n.matchAll(/`([^`]+)`/g)].map((m) => `${e.code} ${m[1]}`));
    const our = [...new Set(o.errors.flatMap((e) => [`${e.code} ${e.code === "INVALID_GRAPHQL" ? "" : (e.coordinate ?? "")}`, ...also(e)]))].sort();
    const same = theirs.length === our.length && theirs.every((k) => k.endsWith(" ") || our.includes(k));
    if (!same) differ("coordinates", i, theirs, our);
    return;
  }
  const vague = new Set(r.hints.filter((h) => !h.coordinate).map((h) => h.code));
  const hints = (x) => x.hints.map((h) => `${h.code} ${vague.has(h.code) ? "" : h.coordinate}`).sort();
  const [rh, oh] = [hints(r), hints(o)];
  if (rh.join() !== oh.join()) differ("hints", i, rh.filter((h) => !oh.includes(h)), oh.filter((h) => !rh.includes(h)));
  const [rs, os] = [normal(r.supergraph), normal(o.supergraph)];
  if (rs !== os) {
    const [a, b] = [rs.split("\n"), os.split("\n")];
    differ("supergraph", i, a.filter((l) => !b.includes(l)).slice(0, 4), b.filter((l) => !a.includes(l)).slice(0, 4));
  }
});
console.log(JSON.stringify(count));
