// Makes plugin.wasm of plugin.js: `node build.mjs [FILE]`.
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { componentize } from '@bytecodealliance/componentize-js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
await mkdir(here('wit/deps/hooks'), { recursive: true });
await cp(here('../../../crates/hooks/wit/hooks.wit'), here('wit/deps/hooks/hooks.wit'));
const { component } = await componentize({
  sourcePath: here('plugin.js'),
  witPath: here('wit'),
  worldName: 'plugin',
  // Nothing of WASI: a component must not import it.
  disableFeatures: ['stdio', 'random', 'clocks', 'http', 'fetch-event'],
});
await writeFile(process.argv[2] ?? here('plugin.wasm'), component);
