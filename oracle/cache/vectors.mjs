// Writes the vectors of the public suite http-cache-tests (https://cache-tests.fyi) that mean something for the answer to a
// POST, one test a line, as `crates/cache/tests/http_cache_tests.jsonl` has them.
//
//   npm pack http-cache-tests@0.4.5 && tar xzf http-cache-tests-0.4.5.tgz
//   node vectors.mjs package
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const GROUPS = ["cc-freshness", "cc-parse", "cc-response", "age-parse", "expires", "expires-parse", "vary", "vary-parse", "stale", "auth"];
const url = pathToFileURL(resolve(process.argv[2], "tests/index.mjs"));
const suites = (await import(url)).default;
for (const suite of suites.filter((suite) => GROUPS.includes(suite.id))) {
  for (const test of suite.tests) {
    const requests = test.requests.map((r) => ({
      request: r.request_headers ?? [],
      response: r.response_headers ?? [],
      status: r.disconnect ? 0 : (r.response_status?.[0] ?? 200),
      pause: r.pause_after ?? false,
      expected: r.expected_type ?? null,
    }));
    const line = { group: suite.id, id: test.id, kind: test.kind ?? "required", browser: test.browser_only ?? false, requests };
    console.log(JSON.stringify(line));
  }
}
