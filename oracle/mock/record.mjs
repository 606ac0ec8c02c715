// Records what the reference implementation answers to the execution cases of the mock:
//   node oracle/mock/record.mjs            writes "expected" into crates/mock/tests/cases/*.json
// Values of "root" are plain data; {"$error": message} raises a field error, {"$arguments": true} answers with the
// coerced arguments.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { buildSchema, execute, parse, validate } from "graphql16";

const folder = new URL("../../crates/mock/tests/cases/", import.meta.url);

function revive(value) {
  if (Array.isArray(value)) return value.map(revive);
  if (value === null || typeof value !== "object") return value;
  if ("$error" in value) return new Error(value.$error);
  if ("$arguments" in value) return (args) => args;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, revive(v)]));
}

for (const name of readdirSync(folder).filter((n) => n.endsWith(".json"))) {
  const path = new URL(name, folder);
  const file = JSON.parse(readFileSync(path, "utf8"));
  const schema = buildSchema(file.schema.join("\n"));
  for (const test of file.cases) {
    const document = parse(test.query);
    const invalid = validate(schema, document);
    if (invalid.length > 0) throw new Error(`${name}: ${test.name}: ${invalid[0].message}`);
    const mutation = document.definitions.some((d) => d.operation === "mutation");
    const { data, errors } = execute({
      schema,
      document,
      rootValue: revive(mutation ? file.mutation : file.root),
      variableValues: test.variables,
      operationName: test.operationName,
    });
    test.expected = {};
    if (data !== undefined) test.expected.data = data;
    if (errors) test.expected.errors = errors.map(({ message, locations, path }) => ({ message, locations, path }));
  }
  writeFileSync(path, JSON.stringify(file, null, 1) + "\n");
}
