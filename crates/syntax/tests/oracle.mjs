// Parses every file named on standard input with the reference implementation and prints one line for each:
//   ok "PRINTED"  or  error LINE:COLUMN "MESSAGE"
// Texts are JSON strings. Argument: the folder of the package to use.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { parse, print } = createRequire(import.meta.url)(process.argv[2]);
for (const file of readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  // Decoding must not drop a byte order mark.
  const source = new TextDecoder('utf-8', { ignoreBOM: true }).decode(readFileSync(file));
  try {
    console.log('ok ' + JSON.stringify(print(parse(source))));
  } catch (error) {
    if (!error.locations) throw error;
    const [{ line, column }] = error.locations;
    console.log(`error ${line}:${column} ${JSON.stringify(error.message)}`);
  }
}
