// Records what graphql 16 and 17 say about every case of the validation corpus beside the case files.
import { caseFiles, record, verdict } from './cases.mjs';

let n = 0;
for (const { path, cases } of caseFiles('cases')) {
  const names = new Set();
  const expected = {};
  for (const { name, schema, text } of cases) {
    if (names.has(name)) throw new Error(`${path}: two cases are called "${name}"`);
    names.add(name);
    const graphql16 = verdict('graphql16', schema, text);
    const graphql17 = verdict('graphql17', schema, text);
    const syntax = [...graphql16, ...graphql17].find((v) => v.message.startsWith('thrown: Syntax'));
    if (syntax) throw new Error(`${path}: "${name}": ${syntax.message}`);
    expected[name] = JSON.stringify(graphql16) === JSON.stringify(graphql17) ? { both: graphql16 } : { graphql16, graphql17 };
    n += 1;
  }
  record(path.replace(/\.graphql$/, '.expected.json'), expected);
}
console.log(`${n} cases recorded`);
