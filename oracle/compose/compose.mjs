// Composes subgraph sets with the reference implementation: one JSON array of `{name, url, sdl}` per input line,
// one JSON answer per output line. `--guild` asks the second opinion instead; `--normal` prints the supergraph sorted.
import { createInterface } from "node:readline";
import { parse, print, visit } from "graphql";

const guild = process.argv.includes("--guild");
const library = guild
  ? (await import("@theguild/federation-composition")).default ?? (await import("@theguild/federation-composition"))
  : (await import("@apollo/composition")).default ?? (await import("@apollo/composition"));

function place(node) {
  const at = node?.loc?.startToken;
  return at ? `${node.subgraph ?? ""}:${at.line}:${at.column}` : "";
}

function compose(subgraphs) {
  const services = [];
  for (const { name, url, sdl } of subgraphs) {
    try {
      services.push({ name, url: url ?? undefined, typeDefs: parse(sdl) });
    } catch (error) {
      return { errors: [{ code: "INVALID_GRAPHQL", message: `[${name}] ${error.message}`, places: [] }], hints: [] };
    }
  }
  let result;
  try {
    result = library.composeServices(services);
  } catch (error) {
    return { crash: String(error?.stack ?? error), errors: [], hints: [] };
  }
  return {
    supergraph: result.supergraphSdl ?? null,
    errors: (result.errors ?? []).map((e) => ({
      code: e.extensions?.code ?? null,
      message: e.message,
      places: (e.nodes ?? []).map(place),
    })),
    hints: (result.hints ?? []).map((h) => ({
      code: h.definition.code,
      coordinate: h.coordinate ?? null,
      message: h.message,
      places: (h.nodes ?? []).map(place),
    })),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim()) process.stdout.write(JSON.stringify(compose(JSON.parse(line))) + "\n");
}
