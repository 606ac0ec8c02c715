// Reads `{"cases": [{"sdl": "...", "introspect": true}], "suggest": [{"input": "a", "options": ["b"]}]}` from stdin
// and writes what versions 16 and 17 of the reference implementation say: per case
// `{"16": {"stage": "sdl", "errors": [...], "introspection": {...}}, "17": {...}}`, per list of names its
// suggestions, and the text of the standard introspection query.
//
// `errors` are messages: those of the SDL rules, or else those of the schema rules (the reference implementation
// looks at the latter only if the former are content). `introspection` is the answer to the standard query with
// every option on.
import { readFileSync } from 'node:fs';
import * as v16 from 'graphql16';
import * as v17 from 'graphql17';
import { didYouMean } from 'graphql16/jsutils/didYouMean.js';
import { suggestionList } from 'graphql16/jsutils/suggestionList.js';

const options = {
  descriptions: true,
  specifiedByUrl: true,
  directiveIsRepeatable: true,
  schemaDescription: true,
  inputValueDeprecation: true,
  oneOf: true,
};

function check(graphql, { sdl, introspect }) {
  let schema;
  try {
    schema = graphql.buildSchema(sdl);
  } catch (error) {
    // SDL rule violations arrive as one error, joined by empty lines.
    return { stage: 'sdl', errors: error.message.split('\n\n') };
  }
  let errors;
  try {
    errors = graphql.validateSchema(schema).map((e) => e.message);
  } catch (error) {
    errors = [`(thrown) ${error.message}`];
  }
  if (errors.length > 0 || !introspect) return { stage: 'schema', errors };
  const result = graphql.executeSync({
    schema,
    document: graphql.parse(graphql.getIntrospectionQuery(options)),
  });
  return { stage: 'schema', errors, introspection: result.data };
}

const { cases, suggest } = JSON.parse(readFileSync(0, 'utf8'));
const output = {
  query: v17.getIntrospectionQuery(options),
  cases: cases.map((c) => ({ 16: check(v16, c), 17: check(v17, c) })),
  suggestions: suggest.map(({ input, options }) => {
    const list = suggestionList(input, options);
    return { list, text: didYouMean(list), kind: didYouMean('the kind', list) };
  }),
};
process.stdout.write(JSON.stringify(output));
