// Who brings no token is refused early; requests to subgraphs say which tenant asks.
import { end, header, setHeader } from 'ogive:hooks/exchange@1.1.0';
import { get } from 'ogive:hooks/context@1.1.0';

const CLAIMS = 'apollo::authentication::jwt_claims';

export const receive = {
  handle() {
    if (header('authorization') === undefined) end(401, 'a token is needed');
  },
};

export const subgraphRequest = {
  handle() {
    const claims = JSON.parse(get(CLAIMS) ?? '{}');
    if (typeof claims?.tenant === 'string') setHeader('x-tenant', claims.tenant);
  },
};
