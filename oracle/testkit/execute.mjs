// Reads one case per line: `{"sdl", "document", "operationName", "variables", "calls": [[type, field, args, value], ...], "data",
// "errors": [path, ...]}`. Executes the document with version 16 of the reference implementation, where the nth
// resolver call is given the nth recorded value, and compares. Writes one line per difference, then how many agree.
import { createInterface } from 'node:readline';
import * as graphql from 'graphql16';

const schemas = new Map();

function schemaOf(sdl) {
  if (!schemas.has(sdl)) schemas.set(sdl, graphql.buildSchema(sdl));
  return schemas.get(sdl);
}

// Objects with sorted keys; numbers as JavaScript sees them on both sides.
function canonical(value) {
  if (Array.isArray(value)) return value.map(canonical);
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.keys(value).sort().map((k) => [k, canonical(value[k])]));
  }
  return value;
}

// The specification leaves the order of types, directives and implementations open, and the editions differ in
// built-in types and directives.
function unordered(data) {
  const byName = (a, b) => (a.name < b.name ? -1 : 1);
  const ours = (t) => !t.name.startsWith('__') && !['Int', 'Float', 'String', 'Boolean', 'ID'].includes(t.name);
  const type = (t) => (t.kind === 'INTERFACE' ? { ...t, possibleTypes: t.possibleTypes.toSorted(byName) } : t);
  if (data?.__schema) {
    data.__schema.types = data.__schema.types.filter(ours).map(type).sort(byName);
    delete data.__schema.directives;
  }
  if (data?.meta?.__typename === '__Type') data.meta = type(data.meta);
  return JSON.stringify(data);
}

function revive(value) {
  if (Array.isArray(value)) return value.map(revive);
  if (value !== null && typeof value === 'object' && '$error' in value) return new Error(value.$error);
  return value;
}

function check({ sdl, document, operationName, variables, calls, data, errors }) {
  const differences = [];
  let next = 0;
  const fieldResolver = (_source, args, _context, info) => {
    const call = calls[next++];
    const here = `${info.parentType.name}.${info.fieldName}`;
    if (!call) {
      differences.push(`call ${next} is ${here}, none was recorded`);
      return null;
    }
    const [type, field, recorded, value] = call;
    if (`${type}.${field}` !== here) differences.push(`call ${next} is ${here}, recorded ${type}.${field}`);
    const [a, b] = [args, recorded].map((x) => JSON.stringify(canonical(x)));
    if (a !== b) differences.push(`${here} has arguments ${a}, recorded ${b}`);
    return revive(value);
  };
  const parsed = graphql.parse(document);
  const schema = schemaOf(sdl);
  const invalid = graphql.validate(schema, parsed);
  if (invalid.length > 0) return [`invalid: ${invalid[0].message}`];
  const result = graphql.executeSync({
    schema,
    document: parsed,
    operationName,
    rootValue: {},
    variableValues: variables,
    fieldResolver,
  });
  const [actual, expected] = [result.data ?? null, JSON.parse(data)].map(unordered);
  if (actual !== expected) {
    let at = 0;
    while (actual[at] === expected[at]) at += 1;
    const [a, b] = [actual, expected].map((text) => text.slice(Math.max(0, at - 80), at + 80));
    differences.push(`reference ...${a}..., monolith ...${b}...`);
  }
  const paths = JSON.stringify((result.errors ?? []).map((e) => e.path ?? null));
  if (paths !== JSON.stringify(errors)) {
    differences.push(`error paths: reference ${paths}, monolith ${JSON.stringify(errors)}`);
  }
  if (next < calls.length) differences.push(`${calls.length - next} recorded calls were not made`);
  return differences;
}

let agree = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const item = JSON.parse(line);
  const differences = check(item);
  if (differences.length === 0) agree += 1;
  else console.log(JSON.stringify({ differences: differences.slice(0, 3), document: item.document, sdl: item.sdl }));
}
console.log(`${agree} agree`);
