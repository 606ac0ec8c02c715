// Subscriptions by clients that are in use: each asks, changes, subscribes, is refused, cancels, and comes back where it can.
import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { Client as Urql, fetchExchange } from '@urql/core';
import { spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { createClient as overSse } from 'graphql-sse';
import { createClient as overWebSocket } from 'graphql-ws';
import { meros } from 'meros/browser';
import relay from 'relay-runtime';
import { SubscriptionClient } from 'subscriptions-transport-ws';
import WebSocket from 'ws';
import { PATIENCE } from './graph.mjs';

const PING = '{ ping }';
const CHANGE = 'mutation { ping }';
const COUNT = 'subscription { count(to: 3) }';
const REFUSED = 'subscription { refused }';
const FOREVER = 'subscription { forever }';

const bounded = (what, promise) => {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`${what} takes too long`)), PATIENCE); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

/** Everything that comes up to the end, or up to so many values; then it is given up. */
function all(subscribe, query, most = Infinity) {
  return bounded(query, new Promise(resolve => {
    const values = [];
    let stop = null;
    const over = end => {
      resolve({ values, end });
      stop ? stop() : setImmediate(() => stop?.());
    };
    stop = subscribe(query, {
      next: value => {
        values.push(value);
        if (values.length >= most) over('given up');
      },
      error: error => over(messages(error)),
      complete: () => over('complete'),
    });
  }));
}

/** What an error says, whatever form a client gives it. */
function messages(error) {
  const list = Array.isArray(error) ? error : error?.errors ?? error?.graphQLErrors ?? error?.source?.errors;
  return list?.map(e => e.message).join() ?? String(error?.message ?? error);
}

/** A door before a gateway that can be slammed. */
async function door(url) {
  const { port, hostname } = new URL(url);
  const open = new Set();
  const server = createServer(client => {
    const upstream = connect(port, hostname);
    for (const [one, other] of [[client, upstream], [upstream, client]]) {
      open.add(one);
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.on('close', () => { open.delete(one); other.destroy(); });
    }
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: url.replace(`:${port}`, `:${server.address().port}`),
    slam: () => open.forEach(socket => socket.destroy()),
    close: () => { server.close(); open.forEach(socket => socket.destroy()); },
  };
}

/** The same for every client. `subscribe(query, sink)` gives what ends it. */
async function scenario(name, { subscribe, once }, { isLeft }, check) {
  const one = once ?? (async query => (await all(subscribe, query)).values[0]);
  check(`${name}: a query`, await one(PING), { ping: 1 });
  check(`${name}: a mutation`, await one(CHANGE), { ping: 2 });
  check(`${name}: a subscription`, await all(subscribe, COUNT), { values: [1, 2, 3].map(count => ({ count })), end: 'complete' });
  const { values, end } = await all(subscribe, REFUSED);
  check(`${name}: an error`, [values.filter(value => value?.refused != null), end.includes('it is forbidden') || JSON.stringify(values).includes('it is forbidden')], [[], true]);
  check(`${name}: a cancellation`, [(await all(subscribe, FOREVER, 1)).values, await isLeft()], [[{ forever: 1 }], true]);
}

/** Comes back when the connection breaks. */
async function comesBack(name, subscribe, slam, { isLeft }, check) {
  const values = await bounded(`${name}: coming back`, new Promise(resolve => {
    const values = [];
    const stop = subscribe(FOREVER, {
      next: value => {
        values.push(value);
        if (values.length === 1) return slam();
        resolve(values);
        setImmediate(() => stop());
      },
      error: error => resolve(messages(error)),
      complete: () => resolve('complete'),
    });
  }));
  check(`${name}: comes back when the connection breaks`, [values, await isLeft()], [[{ forever: 1 }, { forever: 1 }], true]);
}

const data = sink => ({
  next: ({ data, errors }) => (errors ? sink.error(errors) : sink.next(data)),
  error: sink.error,
  complete: sink.complete,
});
const plain = value => JSON.parse(JSON.stringify(value, (key, value) => (key === '__typename' ? undefined : value)));

export async function streams(subscriptions, check) {
  const { url } = subscriptions;
  const gate = await door(url);
  const retry = { retryAttempts: 5, retryWait: () => new Promise(resolve => setTimeout(resolve, 20)) };
  try {
    {
      const client = overWebSocket({ url: gate.url.replace('http', 'ws'), webSocketImpl: WebSocket, lazy: true, ...retry, shouldRetry: () => true });
      const subscribe = (query, sink) => client.subscribe({ query }, data(sink));
      await scenario('graphql-ws', { subscribe }, subscriptions, check);
      await comesBack('graphql-ws', subscribe, gate.slam, subscriptions, check);
      await client.dispose();
    }
    {
      const client = new SubscriptionClient(gate.url.replace('http', 'ws'), { reconnect: true, minTimeout: PATIENCE }, WebSocket);
      const subscribe = (query, sink) => {
        const { unsubscribe } = client.request({ query }).subscribe(data(sink));
        return unsubscribe;
      };
      await scenario('subscriptions-transport-ws', { subscribe }, subscriptions, check);
      await comesBack('subscriptions-transport-ws', subscribe, gate.slam, subscriptions, check);
      client.close();
    }
    for (const singleConnection of [false, true]) {
      const name = `graphql-sse (${singleConnection ? 'single connection' : 'distinct connections'})`;
      const client = overSse({ url: gate.url, singleConnection, ...retry });
      const subscribe = (query, sink) => client.subscribe({ query }, data(sink));
      await scenario(name, { subscribe }, subscriptions, check);
      await comesBack(name, subscribe, gate.slam, subscriptions, check);
      client.dispose();
    }
  } finally {
    gate.close();
  }
  {
    const client = new ApolloClient({ link: new HttpLink({ uri: url }), cache: new InMemoryCache(), defaultOptions: { query: { fetchPolicy: 'no-cache' } } });
    const once = async query => plain((query === PING ? await client.query({ query: gql(query) }) : await client.mutate({ mutation: gql(query) })).data);
    const subscribe = (query, sink) => {
      const running = client.subscribe({ query: gql(query), fetchPolicy: 'no-cache' }).subscribe({
        next: ({ data, error }) => (error ? sink.error(error) : sink.next(plain(data))),
        error: sink.error,
        complete: sink.complete,
      });
      return () => running.unsubscribe();
    };
    await scenario('Apollo Client (multipart)', { subscribe, once }, subscriptions, check);
    client.stop();
  }
  {
    const client = new Urql({ url, fetchSubscriptions: true, preferGetMethod: false, requestPolicy: 'network-only', exchanges: [fetchExchange] });
    const once = async query => (query === PING ? await client.query(query, {}).toPromise() : await client.mutation(query, {}).toPromise()).data;
    const subscribe = (query, sink) => {
      let is_over = false;
      const running = client.subscription(query, {}).subscribe(({ data, error, hasNext }) => {
        if (is_over) return;
        if (error) { is_over = true; return sink.error(error); }
        // The end comes with what was there before.
        if (hasNext === false) { is_over = true; return sink.complete(); }
        if (data) sink.next(plain(data));
      });
      return () => running.unsubscribe();
    };
    // It aborts what it reads and does not catch that.
    const aborted = error => { if (error.name !== 'AbortError') throw error; };
    process.on('unhandledRejection', aborted);
    await scenario('urql (fetch)', { subscribe, once }, subscriptions, check);
    process.off('unhandledRejection', aborted);
  }
  {
    const { Environment, Network, Observable, RecordSource, Store, fetchQuery, requestSubscription, commitMutation } = relay;
    const send = (query, signal) => fetch(url, {
      method: 'POST',
      signal,
      headers: { 'content-type': 'application/json', accept: 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json' },
      body: JSON.stringify({ query }),
    }).then(answer => meros(answer));
    // As Relay's documentation has it: a network of one function, whose answers come in parts through meros.
    const ask = ({ text }) => Observable.create(sink => {
      const left = new AbortController();
      (async () => {
        const answer = await send(text, left.signal);
        if (typeof answer.json === 'function') {
          sink.next(await answer.json());
          return sink.complete();
        }
        for await (const { body } of answer) {
          if (body?.payload) sink.next(body.payload);
          if (body?.errors) return sink.error(body.errors);
        }
        sink.complete();
      })().catch(error => left.signal.aborted || sink.error(error));
      return () => left.abort();
    });
    const environment = new Environment({ network: Network.create(ask, ask), store: new Store(new RecordSource()) });
    // What Relay's compiler makes of an operation of one field.
    const compiled = text => {
      const [, kind, name, to] = /^(?:(query|mutation|subscription) )?\{ (\w+)(?:\(to: (\d)\))? \}$/.exec(text);
      const args = to ? [{ kind: 'Literal', name: 'to', value: Number(to) }] : null;
      const selections = [{ alias: null, args, kind: 'ScalarField', name, storageKey: to ? `${name}(to:${to})` : null }];
      const type = { mutation: 'Mutation', subscription: 'Subscription' }[kind] ?? 'Query';
      const node = { argumentDefinitions: [], name: 'Operation', selections };
      return {
        kind: 'Request',
        fragment: { ...node, kind: 'Fragment', metadata: null, type, abstractKey: null },
        operation: { ...node, kind: 'Operation' },
        params: { id: null, cacheID: text, metadata: {}, name: 'Operation', operationKind: kind ?? 'query', text },
      };
    };
    const once = query => query === PING
      ? bounded(query, fetchQuery(environment, compiled(query), {}).toPromise())
      : bounded(query, new Promise((resolve, reject) => commitMutation(environment, { mutation: compiled(query), variables: {}, onCompleted: resolve, onError: reject })));
    const subscribe = (query, sink) => {
      const running = requestSubscription(environment, {
        subscription: compiled(query), variables: {}, onNext: sink.next, onError: sink.error, onCompleted: sink.complete,
      });
      return () => running.dispose();
    };
    await scenario('Relay with meros (multipart)', { subscribe, once }, subscriptions, check);
  }
}

/** curl reads streams as they come. */
export async function curled({ url, isLeft }, check) {
  const ask = (accept, query, until) => bounded('curl', new Promise(resolve => {
    const child = spawn('curl', ['-sN', '-H', 'content-type: application/json', '-H', `accept: ${accept}`, '-d', JSON.stringify({ query }), url]);
    let text = '';
    child.stdout.on('data', chunk => {
      text += chunk;
      if (until && text.includes(until)) child.kill();
    });
    child.on('close', () => resolve(text));
  }));
  const events = text => [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data).data);
  const sse = 'text/event-stream';
  check('curl: a query over SSE', events(await ask(sse, PING)), [{ ping: 1 }]);
  check('curl: a mutation over SSE', events(await ask(sse, CHANGE)), [{ ping: 2 }]);
  const counted = await ask(sse, COUNT);
  check('curl: a subscription over SSE', [events(counted), counted.endsWith('event: complete\ndata:\n\n')], [[1, 2, 3].map(count => ({ count })), true]);
  check('curl: an error', (await ask(sse, REFUSED)).includes('it is forbidden'), true);
  const parts = await ask('multipart/mixed;boundary=graphql;subscriptionSpec=1.0', COUNT);
  check('curl: a subscription in parts', [parts.match(/"payload":/g)?.length, parts.endsWith('--graphql--\r\n')], [3, true]);
  check('curl: a cancellation', [(await ask(sse, FOREVER, 'forever')).includes('"forever":1'), await isLeft()], [true, true]);
}
