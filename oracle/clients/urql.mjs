// urql: queries by GET and POST, mutations, persisted queries, trusted documents, uploads, partial data.
import { Client, fetchExchange } from '@urql/core';
import { persistedExchange } from '@urql/exchange-persisted';
import { recording, summary } from './graph.mjs';

const ME = 'query Me { me { name } }';
const ADD = 'mutation Add($review: NewReview!) { addReview(review: $review) { id title } }';
const COST = 'query Cost { topProducts(first: 2) { name shippingCost { amount } } }';
// What urql's documentation says to send to servers with a CSRF guard.
const guarded = { headers: { 'apollo-require-preflight': 'true' } };

const client = (url, fetch, more = {}, exchanges = []) =>
  new Client({ url, fetch, exchanges: [...exchanges, fetchExchange], requestPolicy: 'network-only', fetchOptions: guarded, ...more });

export async function urql({ usual, partial, required, uploads, operations }, check) {
  for (const preferGetMethod of [false, 'force']) {
    const how = preferGetMethod ? 'GET' : 'POST';
    const { fetch, sent } = recording();
    const { data, error } = await client(usual, fetch, { preferGetMethod }).query(ME, {}).toPromise();
    check(`urql: a query by ${how}`, [error?.message, data?.me.name, sent[0].method, sent[0].status], [undefined, 'Ida Lindqvist', how, 200]);
  }
  {
    const { fetch, sent } = recording();
    const { data } = await client(usual, fetch).mutation(ADD, { review: { product: 'HP-204', stars: 4, title: 'ok' } }).toPromise();
    check('urql: a mutation', [data?.addReview, sent[0].method], [{ id: 'r13', title: 'ok' }, 'POST']);
  }
  {
    const { fetch, sent } = recording();
    const shop = client(usual, fetch, {}, [persistedExchange({ preferGetForPersistedQueries: 'force' })]);
    const answers = [];
    for (let i = 0; i < 2; i++) answers.push((await shop.query('query Persisted { me { city } }', {}).toPromise()).data?.me.city);
    const whole = s => (s.body?.query ?? s.search.get('query')) != null;
    check('urql: a persisted query: hash, then hash and text, then hash alone', [answers, sent.map(whole), sent.at(-1).method],
      [['Gothenburg', 'Gothenburg'], [false, true, false], 'GET']);
  }
  {
    const { fetch, sent } = recording();
    const generateHash = async (_, document) => operations[document.definitions[0].name.value] ?? '0'.repeat(64);
    const shop = client(required, fetch, { preferGetMethod: false },
      [persistedExchange({ enforcePersistedQueries: true, preferGetForPersistedQueries: false, generateHash })]);
    const me = await shop.query(ME, {}).toPromise();
    check('urql: a document of the manifest by its id', [me.data?.me.name, sent[0].body.query], ['Ida Lindqvist', undefined]);
    const other = await shop.query(COST, {}).toPromise();
    check('urql: any other document is refused', [other.data == null, other.error != null, sent.length], [true, true, 2]);
  }
  {
    const { data, error } = await client(partial, fetch).query(COST, {}).toPromise();
    check('urql: partial data beside its errors', [data?.topProducts.map(p => p.shippingCost), error?.graphQLErrors[0].extensions.code], [[null, null], 'CLOSED']);
  }
  {
    const { data, error } = await client(partial, fetch, { preferGetMethod: false }).query('{ nope }', {}).toPromise();
    check('urql: a refused document', [data == null, error?.graphQLErrors[0]?.extensions.code], [true, 'GRAPHQL_VALIDATION_FAILED']);
  }
  {
    const files = ['one', 'zwei 👍'].map((text, i) => new File([text], `${i}.txt`, { type: 'text/plain' }));
    const { data, error } = await client(uploads, fetch).mutation('mutation($files: [Upload!]!) { storeMany(files: $files) }', { files }).toPromise();
    check('urql: files', [error?.message, data?.storeMany], [undefined, ['one', 'zwei 👍'].map(t => summary(Buffer.from(t)))]);
  }
}
