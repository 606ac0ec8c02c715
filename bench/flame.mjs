// Draws a flame graph from `perf script -F comm,ip,sym`: node flame.mjs TITLE <SCRIPT >SVG
// Width is CPU time, callers are below. Frames of one foreign crate in a row are one; what is narrower than a three
// hundredth is left out. Hovering shows the whole name and the share.
import { readFileSync } from 'node:fs';

const WIDTH = 1200;
const ROW = 17;
/** Narrowest frame that is drawn, as a part of all. */
const LEAST = 1 / 300;
/** Width of a character of the font, in pixels. */
const CHARACTER = 6.6;
/** Frames of a thread before anything of ours. */
const STARTS = /^(__?clone3?|start_thread|_start|main|__libc_start.*|std::rt::.*|std::sys::.*thread.*|std::sys::backtrace::.*|core::ops::function::FnOnce.*|<?alloc::boxed::Box.*FnOnce.*|std::panic.*|__rust_.*|\[unknown\])$/;

/** Without hashes, generic arguments and hexadecimal offsets. */
function clean(name) {
  let text = name.replace(/\+0x[0-9a-f]+$/, '').replace(/::h[0-9a-f]{16}$/, '').replaceAll('::{{closure}}', '').replace(/\{closure#\d+\}/g, '').replace(/::$/, '');
  // `<T as Trait>::method` is `T::method`.
  text = text.replace(/^<(.*) as .*?>::(\w+)$/, '$1::$2');
  let out = '', depth = 0;
  for (const c of text) {
    if (c === '<') depth++;
    else if (c === '>' && depth > 0) depth--;
    else if (depth === 0) out += c;
  }
  return out.replaceAll('::::', '::').replace(/^(&mut |&|dyn )+/, '').replace(/::$/, '') || text;
}
const isOurs = name => name.startsWith('ogive');
const crate = name => (name.includes('::') ? name.split('::')[0] : 'system');

/** Frames that only pass a call on; they are left out where anything is above them. */
const PASSES = new Set(['core', 'alloc', 'std', 'tracing', '']);

/** Frames from the outermost on. */
function stack(lines) {
  const frames = [];
  for (const line of lines.reverse()) {
    const name = clean(line.trim().replace(/^[0-9a-f]+\s+/, ''));
    if (frames.length === 0 && STARTS.test(name)) continue;
    while (frames.length && PASSES.has(crate(frames.at(-1)))) frames.pop();
    const last = frames.at(-1);
    if (last === name) continue;
    if (last !== undefined && !isOurs(name) && crate(last) === crate(name)) frames[frames.length - 1] = name;
    else frames.push(name);
  }
  return frames;
}

const root = { name: 'all', total: 0, below: new Map() };
for (const sample of readFileSync(0, 'utf8').split(/\n\s*\n/)) {
  const [head, ...lines] = sample.split('\n').filter(l => l.trim() && !l.startsWith('#'));
  if (head === undefined || lines.length === 0) continue;
  let node = root;
  root.total++;
  for (const name of [head.trim().replace(/[-:]?\d*:?$/, ''), ...stack(lines)]) {
    if (!node.below.has(name)) node.below.set(name, { name, total: 0, below: new Map() });
    node = node.below.get(name);
    node.total++;
  }
}
if (root.total === 0) {
  console.error('error: there is no sample');
  process.exit(1);
}

const boxes = [];
let deepest = 0;
const walk = [[root, 0, 0]];
while (walk.length) {
  const [node, start, depth] = walk.pop();
  boxes.push([node, start, depth]);
  deepest = Math.max(deepest, depth);
  let at = start;
  for (const child of [...node.below.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (child.total / root.total >= LEAST) walk.push([child, at, depth + 1]);
    at += child.total;
  }
}
const escape = text => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
/** Ours are warm, each crate a little different; the runtime is blue, the system grey. */
function colour(name, depth) {
  if (depth < 2) return '#d9d9d9';
  if (isOurs(name)) {
    const sum = [...crate(name)].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) % 997, 7);
    return `hsl(${12 + (sum % 40)},85%,${66 + (sum % 3) * 4}%)`;
  }
  return crate(name) === 'system' ? '#c9ced6' : '#a9c6e8';
}
const height = (deepest + 1) * ROW + 34;
const out = [
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="monospace" font-size="11">`,
  `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
  `<text x="6" y="18" font-size="13">${escape(process.argv[2] ?? '')} (${root.total} samples)</text>`,
];
for (const [node, start, depth] of boxes) {
  const x = (start / root.total) * WIDTH, width = (node.total / root.total) * WIDTH;
  const y = height - 4 - (depth + 1) * ROW;
  const room = Math.floor((width - 6) / CHARACTER);
  const short = node.name.replace(/^ogive_/, '');
  const label = room < 3 ? '' : short.length <= room ? short : `${short.slice(0, room - 1)}…`;
  out.push(`<g><title>${escape(node.name)}, ${((node.total / root.total) * 100).toFixed(1)} %</title>` +
    `<rect x="${x.toFixed(1)}" y="${y}" width="${Math.max(width - 0.5, 0.3).toFixed(1)}" height="${ROW - 1}" rx="1" fill="${colour(node.name, depth)}"/>` +
    (label && `<text x="${(x + 3).toFixed(1)}" y="${y + 12}">${escape(label)}</text>`) + '</g>');
}
out.push('</svg>');
console.log(out.join('\n'));
