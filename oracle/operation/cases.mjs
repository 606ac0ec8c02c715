// Reads the validation corpus: case files hold documents under `### name [schema]` lines.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as graphql16 from 'graphql16';
import * as graphql17 from 'graphql17';

const here = dirname(fileURLToPath(import.meta.url));
export const testsDir = join(here, '../../crates/operation/tests');
export const versions = { graphql16, graphql17 };

const schemas = new Map();
export function schemaNamed(name) {
  if (!schemas.has(name)) {
    const sdl = readFileSync(join(testsDir, 'schemas', `${name}.graphql`), 'utf8');
    const built = {};
    for (const [version, graphql] of Object.entries(versions)) built[version] = graphql.buildSchema(sdl);
    schemas.set(name, built);
  }
  return schemas.get(name);
}

/// All case files, each with its cases in order.
export function* caseFiles(folder) {
  const dir = join(testsDir, folder);
  for (const file of readdirSync(dir).filter((f) => f.endsWith('.graphql')).sort()) {
    const cases = [];
    for (const line of readFileSync(join(dir, file), 'utf8').split('\n')) {
      const head = /^### (.+?)(?: \[(\w+)\])?$/.exec(line);
      if (head) cases.push({ name: head[1], schema: head[2] ?? 'zoo', lines: [] });
      else if (cases.length) cases.at(-1).lines.push(line);
    }
    yield { path: join(dir, file), cases: cases.map(({ lines, ...c }) => ({ ...c, text: lines.join('\n').trim() })) };
  }
}

/// What one version says: a list of messages with the places they point at.
export function verdict(version, schemaName, text) {
  const graphql = versions[version];
  try {
    const document = graphql.parse(text);
    return graphql.validate(schemaNamed(schemaName)[version], document).map((error) => ({
      message: error.message,
      at: (error.locations ?? []).map((l) => `${l.line}:${l.column}`).join(' '),
    }));
  } catch (error) {
    return [{ message: `thrown: ${error.message}`, at: '' }];
  }
}

/// Writes a recorded file, or with `--check` fails if it would change.
export function record(path, expected) {
  const text = JSON.stringify(expected, null, 1) + '\n';
  if (!process.argv.includes('--check')) writeFileSync(path, text);
  else if (readFileSync(path, 'utf8') !== text) throw new Error(`${path} is not what graphql says; record again`);
}
