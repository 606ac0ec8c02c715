// Makes answers and says of each what a shared cache may do with it, as the npm package http-cache-semantics says; or makes
// structured fields and says what they contain, as the npm package structured-headers says.
//
//   node record.mjs answers SEED COUNT
//   node record.mjs fields SEED COUNT
//
// Prints one JSON line each. Equal seeds give equal lines.
import CachePolicy from "http-cache-semantics";
import * as structured from "structured-headers";

const [what, seed, count] = [process.argv[2], ...process.argv.slice(3).map(Number)];
const NOW = 1_700_000_000_000;

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

let clock = NOW;
class Policy extends CachePolicy {
  now() {
    return clock;
  }
}

const SECONDS = [0, 1, 10, 60, 3600];
const DIRECTIVES = [
  () => `max-age=${pick(SECONDS)}`,
  () => `max-age=${pick(SECONDS)}`,
  () => `max-age="${pick(SECONDS)}"`,
  () => `s-maxage=${pick(SECONDS)}`,
  () => `stale-while-revalidate=${pick(SECONDS)}`,
  () => `stale-if-error=${pick(SECONDS)}`,
  () => pick(["private", "public", "no-store", "no-cache", "must-revalidate", "proxy-revalidate", "immutable"]),
  () => pick(["public", "foo", "foo=bar", "foo=1"]),
];

function answer() {
  const headers = {};
  if (chance(90)) {
    const directives = Array.from({ length: 1 + below(4) }, () => pick(DIRECTIVES)());
    // Which of two equal directives counts is not said.
    const names = directives.map((d) => d.split("=")[0]);
    headers["cache-control"] = directives.filter((_, at) => names.indexOf(names[at]) === at).join(pick([",", ", "]));
  }
  const date = (seconds) => new Date(NOW + seconds * 1000).toUTCString();
  if (chance(30)) headers.expires = pick([date(60), date(3600), date(-60), date(0), "0", "never"]);
  if (chance(30)) headers.date = date(pick([0, -5, -120]));
  if (chance(20)) headers.age = pick(["0", "5", "100", "4000"]);
  if (chance(10)) headers["set-cookie"] = "a=b";
  if (chance(10)) headers.vary = pick(["*", "x-a", "accept-language, x-a"]);
  if (chance(30)) headers.etag = '"a"';
  const request = { "x-a": "1" };
  if (chance(30)) request.authorization = "Bearer a";
  const status = chance(90) ? 200 : pick([404, 500, 503]);
  return { status, headers, request };
}

function judgeAnswer() {
  const { status, headers, request } = answer();
  clock = NOW;
  const asked = { method: "POST", url: "/", headers: request };
  const policy = new Policy(asked, { status, headers }, { shared: true });
  const uses = [0, 2, 30, 59, 61, 130, 3599, 7300].map((after) => {
    clock = NOW + after * 1000;
    if (!policy.storable()) return [after, "never"];
    const { revalidation } = policy.evaluateRequest(asked);
    if (!revalidation) return [after, "fresh"];
    if (!revalidation.synchronous) return [after, "while_revalidating"];
    return [after, policy._useStaleIfError() ? "if_error" : "never"];
  });
  return { now: NOW, status, headers, request, uses };
}

const ITEMS = ["1", "-5", "007", "1.5", "1.2345", "999999999999999", "1000000000000000", '"a"', '"a\\"b"', '"a\\n"', '"a', "a", "a/b", "*a", ":YQ==:", ":Y", "?1", "?0", "?2", "?", "@17", "@1.5", '%"a"', '%"%c3%a9"', '%"%C3"', '%"%ff"', '%"%c"', "é", "(a b)", "(a  1)", "()", "(a", '("a";x=1 b);y', "(a,b)", "", "A.b", "--1", "-", "1.", ".5", "1,5"];
const KEYS = ["max-age", "no-store", "a", "*b", "a_b-c.d*", "A", "1a", "", "private"];

function field() {
  const parameters = () => (chance(25) ? pick([";a", "; a=1", ";  a=?0;b", ";A", ";", " ;a", ";a=", ";a= 1"]) : "");
  const member = () => {
    const bare = chance(50) ? pick(ITEMS) : `${pick(KEYS)}${chance(60) ? pick(["=", "=", "= ", " ="]) + pick(ITEMS) : ""}`;
    return bare + parameters();
  };
  const members = Array.from({ length: below(4) }, member);
  const text = members.join(pick([",", ", ", " ,\t", " , ", ", ", ",,"]));
  return (chance(10) ? " " : "") + text + (chance(10) ? pick([" ", ",", "\t"]) : "");
}

function shown(item) {
  const [value] = item;
  if (Array.isArray(value) || value instanceof ArrayBuffer || value instanceof Date) return "other";
  if (value instanceof structured.Token) return { token: value.toString() };
  if (value instanceof structured.DisplayString) return "other";
  if (typeof value === "number") return { number: value };
  return { [typeof value]: value };
}

function judgeField() {
  const text = field();
  const attempt = (read) => {
    try {
      return read();
    } catch {
      return null;
    }
  };
  const dictionary = attempt(() => [...structured.parseDictionary(text)].map(([name, item]) => [name, shown(item)]));
  const list = attempt(() => structured.parseList(text).map(shown));
  return { text, dictionary, list };
}

const judge = { answers: judgeAnswer, fields: judgeField }[what];
for (let i = 0; i < count; i++) console.log(JSON.stringify(judge()));
