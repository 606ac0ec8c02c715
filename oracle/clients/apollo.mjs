// Apollo Client: queries, mutations, GET, automatic persisted queries, trusted documents, batches, partial data.
import { ApolloClient, ApolloLink, CombinedGraphQLErrors, gql, HttpLink, InMemoryCache, ServerError } from '@apollo/client';
import { BatchHttpLink } from '@apollo/client/link/batch-http';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';
import { createHash } from 'node:crypto';
import { recording } from './graph.mjs';

const ME = gql`query Me { me { name } }`;
const TOP = gql`query Top($n: Int) { topProducts(first: $n) { sku name inStock } }`;
const ADD = gql`mutation Add($review: NewReview!) { addReview(review: $review) { id title product { name } } }`;
const COST = gql`query Cost { topProducts(first: 2) { sku name shippingCost { amount } } }`;
const sha256 = text => createHash('sha256').update(text).digest('hex');

function client(link) {
  // Nothing comes from the client's cache, so that every request is one on the wire.
  const defaultOptions = { query: { fetchPolicy: 'no-cache' }, mutate: { fetchPolicy: 'no-cache' } };
  return new ApolloClient({ link, cache: new InMemoryCache(), defaultOptions, clientAwareness: { name: 'shop', version: '1.0' } });
}

export async function apollo({ usual, partial, required, operations }, check) {
  {
    const { fetch, sent } = recording();
    const shop = client(new HttpLink({ uri: usual, fetch }));
    const { data } = await shop.query({ query: TOP, variables: { n: 2 } });
    check('Apollo Client: a query with variables', data.topProducts.map(p => [p.name, p.inStock]), [['Ridge 30 backpack', true], ['Enamel kettle', false]]);
    check('Apollo Client: asks with POST', sent.map(s => [s.method, s.status]), [['POST', 200]]);
    const review = { product: 'HP-101', stars: 5, title: 'Größe passt 👍' };
    const added = await shop.mutate({ mutation: ADD, variables: { review } });
    check('Apollo Client: a mutation', added.data.addReview, { __typename: 'Review', id: 'r13', title: review.title, product: { __typename: 'Product', name: 'Ridge 30 backpack' } });
  }
  {
    const { fetch, sent } = recording();
    const shop = client(new HttpLink({ uri: usual, fetch, useGETForQueries: true }));
    const { data } = await shop.query({ query: ME });
    check('Apollo Client: a query with GET passes the CSRF guard', [data.me.name, sent[0].method, sent[0].status], ['Ida Lindqvist', 'GET', 200]);
    await shop.mutate({ mutation: ADD, variables: { review: { product: 'HP-101', stars: 1, title: 'x' } } });
    check('Apollo Client: mutations stay POST', sent[1].method, 'POST');
  }
  for (const useGETForHashedQueries of [false, true]) {
    const how = useGETForHashedQueries ? 'GET' : 'POST';
    const { fetch, sent } = recording();
    const shop = client(ApolloLink.from([new PersistedQueryLink({ sha256, useGETForHashedQueries }), new HttpLink({ uri: usual, fetch })]));
    // A document of its own, so that the gateway cannot know it from the other turn.
    const query = gql(`query By${how} { me { name username } }`);
    const names = [];
    for (let i = 0; i < 2; i++) names.push((await shop.query({ query })).data.me.username);
    const whole = s => (s.body?.query ?? s.search.get('query')) != null;
    check(`Apollo Client: a persisted query by ${how}: hash, then hash and text, then hash alone`,
      [names, sent.map(s => [s.method, whole(s), s.status])],
      [['ida', 'ida'], [[how, false, 200], ['POST', true, 200], [how, false, 200]]]);
  }
  {
    const { fetch, sent } = recording();
    const lookUp = { generateHash: document => operations[document.definitions[0].name.value] ?? '0'.repeat(64) };
    const shop = client(ApolloLink.from([new PersistedQueryLink(lookUp), new HttpLink({ uri: required, fetch })]));
    const { data } = await shop.query({ query: ME });
    check('Apollo Client: a document of the manifest by its id', [data.me.name, sent.length, sent[0].body.query], ['Ida Lindqvist', 1, undefined]);
    const refused = await shop.query({ query: COST, errorPolicy: 'all' });
    check('Apollo Client: any other document is refused', [refused.data, CombinedGraphQLErrors.is(refused.error) || ServerError.is(refused.error)], [undefined, true]);
  }
  {
    const { fetch, sent } = recording();
    const shop = client(new BatchHttpLink({ uri: usual, fetch, batchInterval: 5, batchMax: 10 }));
    const answers = await Promise.allSettled([
      shop.query({ query: ME }),
      shop.query({ query: gql`query Bad { me { nothing } }` }),
      shop.query({ query: TOP, variables: { n: 1 } }),
    ]);
    const [me, bad, top] = answers;
    check('Apollo Client: a batch is one request', sent.map(s => [s.method, s.body.length, s.status]), [['POST', 3, 200]]);
    check('Apollo Client: each entry of a batch has its own outcome',
      [me.value?.data.me.name, bad.reason?.errors?.[0].extensions.code, top.value?.data.topProducts.length],
      ['Ida Lindqvist', 'GRAPHQL_VALIDATION_FAILED', 1]);
  }
  {
    const shop = client(new HttpLink({ uri: partial }));
    const { data, error } = await shop.query({ query: COST, errorPolicy: 'all' });
    check('Apollo Client: partial data beside its errors', data.topProducts.map(p => [p.name, p.shippingCost]), [['Ridge 30 backpack', null], ['Enamel kettle', null]]);
    check('Apollo Client: errors with path and code',
      [CombinedGraphQLErrors.is(error), error.errors[0].extensions.code, error.errors.every(e => e.path[0] === 'topProducts')], [true, 'CLOSED', true]);
    const strict = await shop.query({ query: COST }).then(() => null, e => e);
    check('Apollo Client: the same without `errorPolicy` rejects', CombinedGraphQLErrors.is(strict), true);
    const bad = await shop.query({ query: gql`query Bad { nope }` }).then(() => null, e => e);
    check('Apollo Client: a refused document, with its place', [bad?.errors?.[0].extensions.code, bad?.errors?.[0].locations?.[0]],
      ['GRAPHQL_VALIDATION_FAILED', { line: 2, column: 3 }]);
  }
}
