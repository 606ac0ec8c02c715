// Shrinks sets on which this project's composition and the reference disagree:
//   node --stack-size=4000 shrink.mjs PATH/TO/examples/compose < mismatching-sets.jsonl
// Takes away subgraphs, definitions and members as long as the disagreement (verdict, codes or hints) stays the same
// kind, and prints what is left.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { parse, print, visit } from "graphql";
import * as apollo from "@apollo/composition";

const library = apollo.default ?? apollo;
const ours = process.argv[2];
if (!ours) throw new Error("usage: shrink.mjs PATH/TO/examples/compose < sets.jsonl");
const set = (list) => [...new Set(list)].sort().join();

function reference(subgraphs) {
  try {
    const r = library.composeServices(subgraphs.map(({ name, url, sdl }) => ({ name, url, typeDefs: parse(sdl) })));
    const errors = set((r.errors ?? []).map((e) => e.extensions?.code));
    return { errors, hints: errors ? "" : set((r.hints ?? []).map((h) => h.definition.code)) };
  } catch {
    return null;
  }
}

function own(subgraphs) {
  const run = spawnSync(ours, ["--lines"], { input: JSON.stringify(subgraphs) + "\n", maxBuffer: 1 << 28 });
  const r = JSON.parse(run.stdout.toString());
  const errors = set(r.errors.map((e) => e.code));
  return { errors, hints: errors ? "" : set(r.hints.map((h) => h.code)) };
}

/** What they disagree about; null if they agree or the reference fails. */
function disagreement(subgraphs) {
  const theirs = reference(subgraphs);
  if (!theirs) return null;
  const our = own(subgraphs);
  if (theirs.errors !== our.errors) return `errors ${theirs.errors} | ${our.errors}`;
  return theirs.hints === our.hints ? null : `hints ${theirs.hints} | ${our.hints}`;
}

/** Every text with one thing less. */
function* smaller(subgraphs) {
  for (let i = 0; i < subgraphs.length; i++) yield subgraphs.filter((_, j) => j !== i);
  for (let i = 0; i < subgraphs.length; i++) {
    const document = parse(subgraphs[i].sdl, { noLocation: true });
    const lists = ["definitions", "fields", "values", "directives", "arguments", "types", "interfaces"];
    let count = 0;
    visit(document, { enter: (node) => { for (const l of lists) if (Array.isArray(node[l])) count += node[l].length; } });
    for (let n = 0; n < count; n++) {
      let at = 0;
      const less = visit(document, {
        enter(node) {
          const copy = { ...node };
          let changed = false;
          for (const l of lists) {
            if (!Array.isArray(node[l])) continue;
            if (n >= at && n < at + node[l].length) {
              copy[l] = node[l].filter((_, k) => k !== n - at);
              changed = true;
            }
            at += node[l].length;
          }
          return changed ? copy : undefined;
        },
      });
      let sdl;
      try {
        sdl = print(less);
        parse(sdl);
      } catch {
        continue;
      }
      yield subgraphs.map((s, j) => (j === i ? { ...s, sdl } : s));
    }
  }
}

for (const line of readFileSync(0, "utf8").trim().split("\n")) {
  let current = JSON.parse(line);
  const wanted = disagreement(current);
  if (!wanted) {
    console.log("they agree");
    continue;
  }
  for (let again = true; again; ) {
    again = false;
    for (const candidate of smaller(current)) {
      if (candidate.length > 0 && disagreement(candidate) === wanted) {
        current = candidate;
        again = true;
        break;
      }
    }
  }
  console.log(`== ${wanted}`);
  for (const { name, sdl } of current) console.log(`-- ${name}\n${sdl}`);
}
