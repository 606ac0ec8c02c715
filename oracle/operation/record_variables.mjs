// Records how graphql 16 coerces every variable case, beside the case files.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { record, schemaNamed, testsDir, versions } from './cases.mjs';

const graphql = versions.graphql16;
const dir = join(testsDir, 'variables');
let n = 0;
for (const file of readdirSync(dir).filter((f) => f.endsWith('.txt')).sort()) {
  const expected = {};
  for (const line of readFileSync(join(dir, file), 'utf8').split('\n')) {
    const match = /^(\(.*?\)) (\{.*\})$/.exec(line);
    if (!match) continue;
    if (line in expected) throw new Error(`${file}: ${line} stands there twice`);
    const [, definitions, input] = match;
    const document = graphql.parse(`query ${definitions} { count }`);
    const result = graphql.getVariableValues(
      schemaNamed('zoo').graphql16,
      document.definitions[0].variableDefinitions,
      JSON.parse(input),
      { maxErrors: 50 },
    );
    expected[line] = result.errors ? { errors: result.errors.map((e) => e.message) } : { coerced: result.coerced };
    n += 1;
  }
  record(join(dir, file.replace('.txt', '.expected.json')), expected);
}
console.log(`${n} variable cases recorded`);
