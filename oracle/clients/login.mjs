// Apollo Client with tokens: logs in, asks, is refused because its token has ended, renews it, and asks again; over HTTP, and
// over graphql-ws with the token in `connection_init`.
import { ApolloClient, ApolloLink, CombinedGraphQLErrors, gql, HttpLink, InMemoryCache, ServerError } from '@apollo/client';
import { SetContextLink } from '@apollo/client/link/context';
import { ErrorLink } from '@apollo/client/link/error';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { createClient } from 'graphql-ws';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { from, switchMap } from 'rxjs';
import { WebSocket } from 'ws';
import { serve } from './graph.mjs';

const ME = gql`query Me { me { name } }`;
const AUDIENCE = 'https://graphql.example.com';

/** An OpenID provider with one key, which gives a token to whoever logs in. */
export async function issuer() {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256', use: 'sig' };
  const json = value => [200, { 'content-type': 'application/json' }, JSON.stringify(value)];
  const url = await serve(request => request.url === '/jwks.json'
    ? json({ keys: [jwk] })
    : json({ issuer: url, jwks_uri: `${url}/jwks.json` }));
  /** A token that ends in so many seconds. */
  const token = seconds => new SignJWT({})
    .setProtectedHeader({ alg: 'ES256', kid: 'one' })
    .setIssuer(url).setAudience(AUDIENCE).setSubject('ida')
    .setExpirationTime(Math.floor(Date.now() / 1000) + seconds)
    .sign(privateKey);
  return { url, token };
}

/** What a gateway needs to know of it. */
export const knowing = ({ url }) => 'subscription: { enabled: true }\nauthorization: { require_authentication: true }\n'
  + `authentication: { router: { jwt: { last_known_good: '', jwks: [{ discovery: '${url}', audiences: ['${AUDIENCE}'] }] } } }\n`;

/** The codes of an error of the client, however it came. */
function codes(error) {
  const errors = CombinedGraphQLErrors.is(error) ? error.errors
    : ServerError.is(error) ? JSON.parse(error.bodyText).errors : [];
  return errors.map(e => e.extensions?.code);
}

/** Somebody with a token, who can get another one. */
class Account {
  constructor(provider) {
    this.provider = provider;
    this.renewals = 0;
  }
  async logIn(seconds = 3600) {
    this.token = await this.provider.token(seconds);
  }
  async renew() {
    this.renewals++;
    await this.logIn();
  }
}

const client = link => new ApolloClient({ link, cache: new InMemoryCache(), defaultOptions: { query: { fetchPolicy: 'no-cache' } } });

/** Asks over HTTP; `renews`: whether a token that has ended is replaced, and the request sent once more. */
function overHttp(uri, account, renews, sent) {
  const fetching = async (...request) => {
    const answer = await fetch(...request);
    sent.push([answer.status, answer.headers.get('www-authenticate')]);
    return answer;
  };
  const bearer = new SetContextLink(({ headers }) => ({
    headers: account.token ? { ...headers, authorization: `Bearer ${account.token}` } : headers,
  }));
  const renewing = new ErrorLink(({ error, operation, forward }) => codes(error).includes('TOKEN_EXPIRED')
    ? from(account.renew()).pipe(switchMap(() => forward(operation)))
    : undefined);
  const links = [bearer, new HttpLink({ uri, fetch: fetching })];
  return client(ApolloLink.from(renews ? [renewing, ...links] : links));
}

const ended = 'Bearer realm="graphql", error="invalid_token", error_description="the token has expired"';

export async function login({ members, provider }, check) {
  const name = async shop => (await shop.query({ query: ME })).data.me.name;
  const refused = async shop => codes(await shop.query({ query: ME }).then(() => null, error => error));
  {
    const [account, sent] = [new Account(provider), []];
    const shop = overHttp(members, account, true, sent);
    check('login: nobody is let in without a token', await refused(shop), ['UNAUTHENTICATED']);
    await account.logIn();
    check('login: with one the answer comes', await name(shop), 'Ida Lindqvist');
    check('login: the refusal says what to bring', sent, [[401, 'Bearer realm="graphql"'], [200, null]]);
  }
  {
    const [account, sent] = [new Account(provider), []];
    await account.logIn(-3600);
    const codesOf = await refused(overHttp(members, account, false, sent));
    check('login: a token that has ended is refused with a code that clients can act on', [codesOf, sent], [['TOKEN_EXPIRED'], [[401, ended]]]);
    const shop = overHttp(members, account, true, sent);
    check('login: a client that renews it asks once more and gets its answer', [await name(shop), account.renewals], ['Ida Lindqvist', 1]);
    check('login: on the wire', sent.slice(1), [[401, ended], [200, null]]);
    check('login: the new one is good for what follows', [await name(shop), account.renewals], ['Ida Lindqvist', 1]);
  }
  {
    const [account, closed] = [new Account(provider), []];
    await account.logIn(-3600);
    const socket = createClient({
      url: members.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      retryWait: async () => account.renew(),
      connectionParams: () => ({ authorization: `Bearer ${account.token}` }),
      on: { closed: ({ code }) => closed.push(code) },
    });
    const shop = client(new GraphQLWsLink(socket));
    check('login: over a WebSocket the introduction with it is refused, and the renewed one is good', [await name(shop), closed, account.renewals], ['Ida Lindqvist', [4403], 1]);
    await socket.dispose();
  }
}
