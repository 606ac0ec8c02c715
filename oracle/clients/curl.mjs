// curl: POST, GET, HTTP/2, compression both ways, `expect: 100-continue`, files.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { folder, PATIENCE, summary } from './graph.mjs';

const JSON_TYPE = ['-H', 'content-type: application/json'];

/** Runs curl; gives status, version, headers and body. */
function curl(...args) {
  const all = ['--silent', '--show-error', '--include', '--max-time', String(PATIENCE / 1000), '-w', '\n%{http_code} %{http_version} %{size_download}', ...args];
  return new Promise((resolve, reject) =>
    execFile('curl', all, { maxBuffer: 64 << 20 }, (error, out) => {
      if (error) return reject(error);
      const [, status, version, size] = /\n(\d+) (\S+) (\d+)$/.exec(out);
      const blocks = out.slice(0, out.lastIndexOf('\n')).split('\r\n\r\n');
      // Interim answers, such as `100 Continue`, come first.
      let head = blocks.shift();
      const interim = [];
      while (/^HTTP\/\S+ 1\d\d/.test(head)) {
        interim.push(head);
        head = blocks.shift();
      }
      const body = blocks.join('\r\n\r\n');
      resolve({ status: Number(status), version, size: Number(size), head: head.toLowerCase(), interim, body });
    }));
}

const whole = text => JSON.stringify({ query: text });
const ME = whole('{ me { name } }');
const ANSWER = '{"data":{"me":{"name":"Ida Lindqvist"}}}';

export async function curls({ usual, uploads }, check) {
  const post = await curl(usual, ...JSON_TYPE, '-d', ME);
  check('curl: POST', [post.status, post.version, post.body], [200, '1.1', ANSWER]);
  const java = await curl(usual, ...JSON_TYPE, '-H', 'accept: text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2', '-d', ME);
  check('curl: the `accept` header of Java\'s `HttpURLConnection`', [java.status, java.body], [200, ANSWER]);
  const form = await curl(usual, '-d', ME);
  check('curl: a form\'s media type is refused', form.status, 415);
  const url = ['--get', usual, '--data-urlencode', 'query={ me { name } }'];
  const got = await curl(...url, '-H', 'apollo-require-preflight: true');
  check('curl: GET', [got.status, got.body], [200, ANSWER]);
  const bare = await curl(...url);
  check('curl: GET without a header that pages cannot send', [bare.status, JSON.parse(bare.body).errors[0].extensions.code], [400, 'CSRF_ERROR']);
  const mutation = await curl('--get', usual, '-H', 'apollo-require-preflight: true', '--data-urlencode',
    'query=mutation { addReview(review: { product: "HP-101", stars: 1, title: "x" }) { id } }');
  check('curl: a mutation with GET', [mutation.status, /\r\nallow: .*post/.test(mutation.head)], [405, true]);

  const h2c = await curl(usual, '--http2-prior-knowledge', ...JSON_TYPE, '-d', ME);
  check('curl: HTTP/2 without TLS', [h2c.status, h2c.version, h2c.body], [200, '2', ANSWER]);
  const upgrade = await curl(usual, '--http2', ...JSON_TYPE, '-d', ME);
  check('curl: an upgrade to HTTP/2 is asked for: the answer comes all the same', [upgrade.status, upgrade.body], [200, ANSWER]);

  const long = whole(`{ ${Array.from({ length: 40 }, (_, i) => `a${i}: topProducts { name category reviews { title } }`).join(' ')} }`);
  const plain = await curl(usual, ...JSON_TYPE, '-d', long);
  for (const encoding of ['gzip', 'br', 'zstd']) {
    for (const http of ['--http1.1', '--http2-prior-knowledge']) {
      const small = await curl(usual, http, '--compressed', '-H', `accept-encoding: ${encoding}`, ...JSON_TYPE, '-d', long);
      check(`curl: an answer as ${encoding}, ${http}`,
        [small.head.includes(`\r\ncontent-encoding: ${encoding}`), small.size < plain.size / 4, small.body === plain.body], [true, true, true]);
    }
  }
  const file = join(folder, 'body.gz');
  writeFileSync(file, gzipSync(ME));
  const zipped = await curl(usual, ...JSON_TYPE, '-H', 'content-encoding: gzip', '--data-binary', `@${file}`);
  check('curl: a request as gzip', [zipped.status, zipped.body], [200, ANSWER]);
  const waiting = await curl(usual, ...JSON_TYPE, '-H', 'expect: 100-continue', '-d', ME);
  check('curl: waits for `100 Continue`', [waiting.interim.length, waiting.status, waiting.body], [1, 200, ANSWER]);
  const chunked = await curl(usual, ...JSON_TYPE, '-H', 'transfer-encoding: chunked', '-d', ME);
  check('curl: a chunked request', [chunked.status, chunked.body], [200, ANSWER]);
  const health = await curl('--head', new URL('/health', usual).href);
  check('curl: HEAD of the health check', health.status, 200);

  const bytes = randomBytes(3_000_000);
  const photo = join(folder, 'photo.jpg');
  writeFileSync(photo, bytes);
  const parts = ['-F', 'operations={"query":"mutation($file: Upload!) { storeA(file: $file) }","variables":{"file":null}}', '-F', 'map={"0":["variables.file"]}', '-F', `0=@${photo}`];
  for (const http of ['--http1.1', '--http2-prior-knowledge']) {
    const stored = await curl(uploads, http, '-H', 'apollo-require-preflight: true', ...parts);
    check(`curl: a file of 3 MB, ${http}`, [stored.status, stored.body], [200, JSON.stringify({ data: { storeA: summary(bytes) } })]);
  }
  const unguarded = await curl(uploads, ...parts);
  check('curl: a file without a header that pages cannot send', [unguarded.status, JSON.parse(unguarded.body).errors[0].extensions.code], [400, 'CSRF_ERROR']);
}
