// Clients that are in use read answers in parts: Apollo Client with both of its handlers, urql, meros (which Relay reads them with).
import { ApolloClient, HttpLink, InMemoryCache, gql } from '@apollo/client';
import { Defer20220824Handler, GraphQL17Alpha9Handler } from '@apollo/client/incremental';
import { Client, fetchExchange } from '@urql/core';
import { meros } from 'meros/browser';

const DEFERRED = '{ shop { name ... @defer(label: "more") { owner { name } } } }';
const STREAMED = '{ maybe @stream(initialCount: 1, label: "rest") { id name } }';
const PATIENCE = 120_000;
const late = what => new Promise((_, reject) => setTimeout(() => reject(new Error(`${what} takes too long`)), PATIENCE).unref());

/** All that Apollo Client tells of a query. */
async function apollo(url, handler, query) {
  const client = new ApolloClient({
    link: new HttpLink({ uri: url }),
    cache: new InMemoryCache(),
    incrementalHandler: handler,
  });
  const told = [];
  await new Promise((resolve, reject) => {
    client.watchQuery({ query: gql(query), fetchPolicy: 'network-only' }).subscribe({
      next: result => {
        if (result.error) reject(result.error);
        if (result.data) told.push(structuredClone(result.data));
        if (!result.loading && result.dataState === 'complete') resolve();
      },
      error: reject,
    });
  });
  client.stop();
  return told;
}

const plain = value => JSON.parse(JSON.stringify(value, (key, value) => (key === '__typename' ? undefined : value)));

export async function clients(url, check) {
  const shop = { name: 'shop', owner: { name: 'person 1' } };
  const maybe = [{ id: 20, name: 'item 20' }, null, { id: 22, name: 'item 22' }];
  for (const [name, handler] of [['of 2022', () => new Defer20220824Handler()], ['current', () => new GraphQL17Alpha9Handler()]]) {
    const told = plain(await Promise.race([apollo(url, handler(), DEFERRED), late(`Apollo Client, ${name}`)]));
    check(`Apollo Client, ${name}: @defer`, [told[0], told.at(-1)], [{ shop: { name: 'shop' } }, { shop }]);
  }
  const streamed = plain(await Promise.race([apollo(url, new GraphQL17Alpha9Handler(), STREAMED), late('Apollo Client, @stream')]));
  check('Apollo Client, current: @stream', [streamed[0].maybe.length, streamed.at(-1)], [1, { maybe }]);

  const urql = new Client({ url, exchanges: [fetchExchange], preferGetMethod: false });
  for (const [query, wanted] of [[DEFERRED, { shop }], [STREAMED, { maybe }]]) {
    const told = [];
    await Promise.race([new Promise(resolve => {
      urql.query(query, {}, { requestPolicy: 'network-only' }).subscribe(result => {
        told.push(plain(result.data));
        if (!result.hasNext) resolve();
      });
    }), late('urql')]);
    check(`urql: ${query}`, told.at(-1), wanted);
    check(`urql: ${query}: in parts`, told.length > 1, true);
  }

  const headers = { 'content-type': 'application/json', accept: 'multipart/mixed;incrementalSpec=v0.2' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ query: STREAMED }), signal: AbortSignal.timeout(PATIENCE) });
  const parts = [];
  for await (const part of await meros(response)) parts.push(part.json && part.body);
  check('meros: parts are JSON', parts.length > 1 && parts.every(part => typeof part.hasNext === 'boolean'), true);
  check('meros: the last part says so', [parts[0].hasNext, parts.at(-1).hasNext], [true, false]);
}
