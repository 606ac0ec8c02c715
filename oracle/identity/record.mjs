// Makes tokens, good and damaged, and says of each whether the npm package jose accepts it.
//
//   node record.mjs SEED COUNT
//
// Prints JSON lines: first the key sets, the time and the rules, then one line per token. The same seed makes the same kinds of
// tokens; keys and signatures are new with every run.
import * as jose from "jose";
import { createHmac } from "node:crypto";

const [seed, count] = process.argv.slice(2).map(Number);
const NOW = 1_700_000_000;
const SKEW = 5;
const AUDIENCE = "https://gateway.example";

// splitmix64, as the tests in Rust have it.
let state = BigInt(seed);
const mask = (1n << 64n) - 1n;
function next() {
  state = (state + 0x9e3779b97f4a7c15n) & mask;
  let z = state;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask;
  return z ^ (z >> 31n);
}
const below = (n) => Number(next() % BigInt(n));
const pick = (list) => list[below(list.length)];
const chance = (percent) => below(100) < percent;

const ALGORITHMS = {
  RSA: ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  "P-256": ["ES256"],
  "P-384": ["ES384"],
  Ed25519: ["EdDSA"],
};

async function key(type, kid, alg) {
  const generate = alg ?? ALGORITHMS[type][0];
  const options = { extractable: true, modulusLength: 2048, crv: type === "Ed25519" ? type : undefined };
  const { publicKey, privateKey } = await jose.generateKeyPair(generate, options);
  const jwk = { ...(await jose.exportJWK(publicKey)), kid, use: "sig" };
  if (alg) jwk.alg = alg;
  const pem = await jose.exportSPKI(publicKey);
  return { type, kid, jwk, pem, private: await jose.exportJWK(privateKey), algs: alg ? [alg] : ALGORITHMS[type] };
}

async function issuer(name, keys) {
  return { name, keys, jwks: { keys: keys.map((key) => key.jwk) } };
}

const secret = (kid, alg, bytes) => {
  const k = Uint8Array.from({ length: bytes }, () => below(256));
  return { type: "oct", kid, secret: k, jwk: { kty: "oct", kid, alg, k: jose.base64url.encode(k) }, algs: [alg] };
};

// Both have a key "a", of different kinds.
const issuers = [
  await issuer("https://one.example", [
    await key("RSA", "a"),
    await key("RSA", "b", "PS256"),
    await key("P-256", "c"),
    await key("P-384", "d"),
    await key("Ed25519", "e"),
  ]),
  await issuer("https://two.example", [await key("P-256", "a", "ES256"), await key("RSA", "r", "RS512")]),
  await issuer("https://secret.example", [secret("h", "HS256", 32), secret("i", "HS384", 48), secret("j", "HS512", 64)]),
];

async function signed(header, payload, key) {
  const input = `${jose.base64url.encode(header)}.${jose.base64url.encode(payload)}`;
  return `${input}.${await signature(input, header, key)}`;
}

// Signs as it was told, whatever the header says.
async function signature(input, header, key) {
  const bytes = new TextEncoder().encode(input);
  const alg = key.as ?? pick(key.algs);
  if (key.secret) {
    const hash = { HS256: "sha256", HS384: "sha384", HS512: "sha512" }[alg];
    return jose.base64url.encode(createHmac(hash, key.secret).update(bytes).digest());
  }
  const hash = { 256: "SHA-256", 384: "SHA-384", 512: "SHA-512" }[alg.slice(2)];
  const parameters = alg.startsWith("RS")
    ? { name: "RSASSA-PKCS1-v1_5", hash }
    : alg.startsWith("PS")
      ? { name: "RSA-PSS", hash, saltLength: Number(alg.slice(2)) / 8 }
      : alg.startsWith("ES")
        ? { name: "ECDSA", hash, namedCurve: key.type }
        : { name: "Ed25519" };
  const jwk = { ...key.private };
  delete jwk.alg;
  delete jwk.use;
  delete jwk.key_ops;
  const imported = await crypto.subtle.importKey("jwk", jwk, parameters, false, ["sign"]);
  return jose.base64url.encode(new Uint8Array(await crypto.subtle.sign(parameters, imported, bytes)));
}

// What may be done to a token before it is signed; each gives what kind of damage it is.
const BEFORE = [
  ["kid is missing", (t) => delete t.header.kid],
  ["kid is another one", (t) => (t.header.kid = pick(["z", "", "A", "../a", "a' OR 1=1 --", "%61", "a\u0000", "a "]))],
  ["kid is of another key", (t) => (t.header.kid = pick(t.issuer.keys).kid)],
  ["kid is no text", (t) => (t.header.kid = pick([1, null, ["a"], { a: 1 }, true]))],
  ["alg is another one", (t) => (t.header.alg = pick(["RS256", "PS256", "ES256", "EdDSA", "HS256", "ES384", "ES512", "RS1", "rs256"]))],
  ["alg is none", (t) => (t.header.alg = pick(["none", "None", "NONE", "", null, 1]))],
  ["alg is missing", (t) => delete t.header.alg],
  ["crit", (t) => (t.header.crit = pick([["exp"], [], ["b64"], "b64"]))],
  ["b64", (t) => ((t.header.b64 = false), (t.header.crit = ["b64"]))],
  ["typ", (t) => (t.header.typ = pick(["JWT", "at+jwt", "application/at+jwt", "jwt"]))],
  ["typ is for something else", (t) => (t.header.typ = pick(["logout+jwt", "dpop+jwt"]))],
  ["keys in the header", (t) => ((t.header.jwk = t.key.jwk), (t.header.jku = "http://127.0.0.1:1/"))],
  ["iss is another one", (t) => (t.claims.iss = pick(["https://three.example", "https://one.example/", "", ...issuers.map((i) => i.name)]))],
  ["iss is missing", (t) => delete t.claims.iss],
  ["iss is no text", (t) => (t.claims.iss = pick([1, null, [t.claims.iss], {}]))],
  ["aud is a list", (t) => (t.claims.aud = pick([[AUDIENCE], ["x", AUDIENCE], [AUDIENCE, AUDIENCE]]))],
  ["aud is another one", (t) => (t.claims.aud = pick(["x", ["x", "y"], [], "", AUDIENCE + "/"]))],
  ["aud is missing", (t) => delete t.claims.aud],
  ["aud is no text", (t) => (t.claims.aud = pick([1, null, {}, [1]]))],
  ["aud has something that is no text", (t) => (t.claims.aud = [AUDIENCE, 1])],
  ["exp is over", (t) => (t.claims.exp = NOW - pick([SKEW, SKEW + 1, 60, 1e6]))],
  ["exp is almost over", (t) => (t.claims.exp = NOW - SKEW + pick([1, 2, 3, 0.5]))],
  ["exp is a fraction", (t) => (t.claims.exp = NOW + 0.5)],
  ["exp is missing", (t) => delete t.claims.exp],
  ["exp is no number", (t) => (t.claims.exp = pick([String(NOW + 60), null, [NOW + 60], true]))],
  ["exp is out of range", (t) => (t.claims.exp = pick([1e15, 1e300]))],
  ["exp is before 1970", (t) => (t.claims.exp = -1)],
  ["nbf is past", (t) => (t.claims.nbf = NOW - 1)],
  ["nbf is soon", (t) => (t.claims.nbf = NOW + SKEW)],
  ["nbf is to come", (t) => (t.claims.nbf = NOW + SKEW + pick([1, 0.5, 60]))],
  ["nbf is no number", (t) => (t.claims.nbf = pick(["1", null, {}]))],
  ["iat is to come", (t) => (t.claims.iat = NOW + 3600)],
  ["iat is no number", (t) => (t.claims.iat = pick(["1", {}]))],
  ["sub is no text", (t) => (t.claims.sub = pick([1, {}, ["x"]]))],
  ["signed with another key", (t) => (t.key = pick(t.issuer.keys))],
  ["signed with a key of another issuer", (t) => (t.key = pick(pick(issuers).keys))],
  [
    "signed with the public key as a secret",
    (t) => {
      const text = pick([t.key.pem, JSON.stringify(t.key.jwk), t.key.jwk.n, t.key.jwk.x]);
      if (!text) return;
      t.header.alg = "HS256";
      t.key = { secret: new TextEncoder().encode(text), algs: ["HS256"] };
    },
  ],
];
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const part = (text, at, change) => text.split(".").map((p, i) => (i === at ? change(p) : p)).join(".");
const again = (text) => text.replace(/^\{/, `{${text.slice(1, text.indexOf(",") > 0 ? text.indexOf(",") : -1)},`);
// And after.
const AFTER = [
  ["a letter is another one", (t) => { const at = below(t.length - 1); const l = pick(LETTERS); return t[at] === "." ? t : t.slice(0, at) + l + t.slice(at + 1); }],
  ["the last letter is another one", (t) => t.slice(0, -1) + pick(LETTERS)],
  ["it is cut off", (t) => t.slice(0, below(t.length))],
  ["the signature is gone", (t) => part(t, 2, () => "")],
  ["a part is gone", (t) => t.split(".").slice(0, 2).join(".")],
  ["it has four parts", (t) => t + "." + pick(["", "e30"])],
  ["it has five parts", (t) => t + ".e30.e30"],
  ["padding", (t) => t + pick(["=", "=="])],
  ["white space", (t) => pick([t + " ", " " + t, t.slice(0, 9) + "\n" + t.slice(9)])],
  ["base64 of another alphabet", (t) => t.replaceAll("-", "+").replaceAll("_", "/")],
  ["the payload is another one", (t) => part(t, 1, () => jose.base64url.encode(`{"iss":"https://one.example","aud":"${AUDIENCE}","exp":${NOW + 60},"sub":"admin"}`))],
];
// Texts that are signed as they are.
const TEXTS = [
  ["a member of the header is there twice", (t) => (t.headerText = again(JSON.stringify(t.header)))],
  ["a claim is there twice", (t) => (t.claimsText = again(JSON.stringify(t.claims)))],
  ["claims are no object", (t) => (t.claimsText = pick(["[]", '"x"', "1", "null", "", "{", "{} {}"]))],
  ["the header is no object", (t) => (t.headerText = pick(["[]", '"x"', "null", ""]))],
];

async function token() {
  const from = pick(issuers);
  const key = { ...pick(from.keys) };
  key.as = pick(key.algs);
  const t = {
    issuer: from,
    key,
    header: { alg: key.as, kid: key.kid },
    claims: { iss: from.name, aud: AUDIENCE, exp: NOW + 60 + below(1000), sub: "ida", scope: "a b" },
  };
  const kinds = [];
  const apply = ([kind, change], value) => (kinds.push(kind), change(value));
  if (chance(75)) apply(pick(BEFORE), t);
  if (chance(15)) apply(pick(BEFORE), t);
  if (chance(8)) apply(pick(TEXTS), t);
  t.headerText ??= JSON.stringify(t.header);
  t.claimsText ??= JSON.stringify(t.claims);
  let text = await signed(t.headerText, t.claimsText, t.key);
  if (chance(15)) text = apply(pick(AFTER), text);
  return { token: text, kinds };
}

const sets = new Map(issuers.map((i) => [i.name, i]));
async function verdict(text) {
  try {
    const { iss } = jose.decodeJwt(text);
    const from = typeof iss === "string" ? sets.get(iss) : undefined;
    if (!from) return "unknown issuer";
    const options = {
      issuer: from.name,
      audience: AUDIENCE,
      clockTolerance: SKEW,
      currentDate: new Date(NOW * 1000),
      requiredClaims: ["exp"],
    };
    if (from.keys[0].secret) {
      const find = (header) => {
        const found = from.keys.filter((key) => key.algs[0] === header.alg && (header.kid === undefined || header.kid === key.kid));
        if (!found.length) throw new Error("no key");
        return found[0].secret;
      };
      await jose.jwtVerify(text, find, options);
      return "ok";
    }
    try {
      await jose.jwtVerify(text, jose.createLocalJWKSet(from.jwks), options);
      return "ok";
    } catch (error) {
      // As its documentation does it.
      if (error?.code !== "ERR_JWKS_MULTIPLE_MATCHING_KEYS") throw error;
      for await (const publicKey of error) {
        try {
          await jose.jwtVerify(text, publicKey, options);
          return "ok";
        } catch (inner) {
          if (inner?.code !== "ERR_JWS_SIGNATURE_VERIFICATION_FAILED") throw inner;
        }
      }
      throw new jose.errors.JWSSignatureVerificationFailed();
    }
  } catch (error) {
    return error.code ?? error.message;
  }
}

const out = [];
out.push({ now: NOW, skew: SKEW, audience: AUDIENCE, sets: issuers.map(({ name, jwks }) => ({ issuer: name, jwks })) });
for (let i = 0; i < count; i++) {
  const made = await token();
  out.push({ ...made, jose: await verdict(made.token) });
}
process.stdout.write(out.map((line) => JSON.stringify(line) + "\n").join(""));
