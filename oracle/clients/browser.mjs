// A browser: pages of the origin that is allowed may ask and read, those of another may neither read nor cause anything.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { PATIENCE } from './graph.mjs';

const ME = '{ me { name } }';
const ADD = 'mutation { addReview(review: { product: "HP-101", stars: 1, title: "x" }) { id } }';

/** `home` is the origin that is allowed; the same server by its other name is another origin. */
export async function browser({ usual, uploads, asked }, events, home, executablePath, check) {
  const profile = mkdtempSync(join(tmpdir(), 'ogive-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    timeout: PATIENCE,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
  context.setDefaultTimeout(PATIENCE);
  try {
    const page = await context.newPage();
    // What a page gets: data, or the name of the exception.
    const ask = (url, options) => page.evaluate(
      ([url, options]) => fetch(url, options).then(a => a.text().then(t => t && JSON.parse(t)), e => e.name), [url, options]);
    const post = (query, more) => ({ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ query }), ...more });
    const get = `${usual}?query=${encodeURIComponent(ME)}`;
    const answer = { data: { me: { name: 'Ida Lindqvist' } } };

    await page.goto(home);
    check('browser: a page that is allowed asks with POST', await ask(usual, post(ME)), answer);
    check('browser: it asks with credentials', await ask(usual, post(ME, { credentials: 'include' })), answer);
    check('browser: it asks with GET', await ask(get, { headers: { 'apollo-require-preflight': 'true' } }), answer);
    const csrf = await ask(get, {});
    check('browser: it may read why a GET without such a header is refused', csrf.errors?.[0].extensions.code, 'CSRF_ERROR');

    // One stream for many operations: `EventSource` can send no headers, so the token is in the URL.
    check('browser: an EventSource has the answers of operations', await page.evaluate(async url => {
      const token = await (await fetch(url, { method: 'PUT' })).text();
      const source = new EventSource(`${url}?token=${token}`);
      const values = [];
      const over = new Promise(resolve => {
        source.addEventListener('next', ({ data }) => values.push(JSON.parse(data)));
        source.addEventListener('complete', ({ data }) => resolve(JSON.parse(data).id));
      });
      await new Promise(resolve => { source.onopen = resolve; });
      const answer = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-graphql-event-stream-token': token },
        body: JSON.stringify({ query: 'subscription { count(to: 2) }', extensions: { operationId: 'a' } }),
      });
      const id = await over;
      source.close();
      return [answer.status, id, values];
    }, events.url), [202, 'a', [1, 2].map(count => ({ id: 'a', payload: { data: { count } } }))]);
    const overWebSocket = url => page.evaluate(url => new Promise(resolve => {
      const socket = new WebSocket(url, 'graphql-transport-ws');
      const heard = [];
      socket.onopen = () => socket.send('{"type":"connection_init"}');
      socket.onerror = () => resolve('refused');
      socket.onmessage = ({ data }) => {
        const message = JSON.parse(data);
        if (message.type === 'connection_ack') {
          socket.send('{"id":"1","type":"subscribe","payload":{"query":"subscription { count(to: 2) }"}}');
        } else if (message.type === 'next') {
          heard.push(message.payload.data.count);
        } else if (message.type === 'complete') {
          socket.close();
          resolve(heard);
        }
      };
    }), url.replace('http', 'ws'));
    check('browser: a WebSocket', await overWebSocket(events.url), [1, 2]);

    await page.goto(home.replace('127.0.0.1', 'localhost'));
    check('browser: a page that is not allowed opens no WebSocket', await overWebSocket(events.url), 'refused');
    const before = [await asked('accounts'), await asked('reviews')];
    check('browser: the subgraph has been asked for that', before[0] > 0, true);
    check('browser: a page that is not allowed cannot POST JSON', await ask(usual, post(ADD)), 'TypeError');
    check('browser: it cannot GET with a header', await ask(get, { headers: { 'apollo-require-preflight': 'true' } }), 'TypeError');
    check('browser: it cannot read what a GET without one says', await ask(get, {}), 'TypeError');
    // Requests that need no permission reach the gateway; it must refuse them.
    const statuses = [];
    page.on('response', response => response.url().startsWith(new URL(usual).origin) && statuses.push(`${response.request().method()} ${response.request().resourceType()} ${response.status()}`));
    await page.evaluate(([url, body]) => fetch(url, { method: 'POST', mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body }),
      [usual, JSON.stringify({ query: ADD })]);
    await page.evaluate(([url]) => fetch(url, { mode: 'no-cors' }), [get]);
    await page.evaluate(([url]) => new Promise(done => {
      const image = new Image();
      image.onload = image.onerror = done;
      image.src = url;
    }), [get]);
    for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      await page.goto(home.replace('127.0.0.1', 'localhost'));
      await Promise.all([
        page.waitForURL(usual),
        page.evaluate(([action, enctype, query]) => {
          const form = Object.assign(document.createElement('form'), { method: 'POST', action, enctype });
          form.append(Object.assign(document.createElement('input'), { name: '{"query": "' + query.replaceAll('"', '\\"') + '", "a": "', value: '"}' }));
          document.body.append(form);
          form.submit();
        }, [usual, enctype, ADD]),
      ]);
    }
    // The browser does not say what came for the image.
    check('browser: requests without permission are refused', statuses,
      ['POST fetch 415', 'GET fetch 400', 'POST document 415', 'POST document 415', 'POST document 415']);
    await page.goto(home.replace('127.0.0.1', 'localhost'));
    const upload = await page.evaluate(([url]) => {
      const form = new FormData();
      form.append('operations', '{"query":"mutation($f: Upload!) { storeA(file: $f) }","variables":{"f":null}}');
      form.append('map', '{"0":["variables.f"]}');
      form.append('0', new Blob(['x']));
      return fetch(url, { method: 'POST', body: form }).then(a => a.status, e => e.name);
    }, [uploads]);
    check('browser: nor does a form with a file', upload, 'TypeError');
    check('browser: no subgraph was asked for any of it', [await asked('accounts'), await asked('reviews')], before);
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
}
