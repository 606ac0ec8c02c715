// Verifies requests of the gateway with programs of others: aws4, http-message-signatures, and Hive's plugin.
// Reads a list of `{ kind, method, url, headers, body, .. }` from standard input; writes a list of `true` or a reason.
import { createHash, createPublicKey, webcrypto } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { useHmacSignatureValidation } from '@graphql-mesh/hmac-upstream-signature';
import aws4 from 'aws4';
import { createVerifier, httpbis } from 'http-message-signatures';

/** Signs the same request and compares. */
function aws({ method, url, headers, body, service, region, key, secret }) {
  const { host, pathname, search } = new URL(url);
  const found = headers.authorization;
  const signed = found.match(/SignedHeaders=([^,]+)/)[1].split(';');
  const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => signed.includes(name)));
  kept['X-Amz-Date'] = headers['x-amz-date'];
  delete kept['x-amz-date'];
  // aws4 would add the length of the body to what is signed.
  const extraHeadersToIgnore = { 'content-length': true };
  const request = { method, host, path: pathname + search, headers: kept, body, service, region, extraHeadersToIgnore };
  const expected = aws4.sign(request, { accessKeyId: key, secretAccessKey: secret }).headers.Authorization;
  return expected === found || `aws4: ${expected}\nfound: ${found}`;
}

async function message({ method, url, headers, body, algorithm, publicKey, secret, keyid }) {
  const digest = headers['content-digest'];
  if (digest) {
    const [, name, value] = digest.match(/^(sha-\d+)=:(.*):$/);
    const hash = createHash(name.replace('-', '')).update(body).digest('base64');
    if (hash !== value) return `content-digest: ${hash}`;
  }
  const key = secret ? Buffer.from(secret) : createPublicKey(publicKey);
  const verifier = createVerifier(key, algorithm);
  const known = { id: keyid, algs: [algorithm], verify: verifier };
  const verified = await httpbis.verifyMessage({ keyLookup: async params => (params.keyid === keyid ? known : null) }, { method, url, headers });
  return verified === true || `http-message-signatures: ${verified}`;
}

async function hmac({ body, secret, extension }) {
  const quiet = () => {};
  const logger = { debug: quiet, error: quiet, info: quiet, warn: quiet };
  const plugin = useHmacSignatureValidation({ secret, extensionName: extension });
  plugin.onYogaInit({ yoga: { logger } });
  await plugin.onParams({ params: JSON.parse(body), fetchAPI: { crypto: webcrypto, TextEncoder } });
  return true;
}

const kinds = { aws, message, hmac };
const answers = [];
for (const request of JSON.parse(await text(process.stdin))) {
  try {
    answers.push(await kinds[request.kind](request));
  } catch (error) {
    answers.push(String(error.stack));
  }
}
process.stdout.write(JSON.stringify(answers));
