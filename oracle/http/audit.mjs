// Runs the audits of npm `graphql-http` (GraphQL over HTTP) against a server and writes one line each.
//
//     node oracle/http/audit.mjs http://127.0.0.1:4000/graphql
//
// The guard against cross-site requests wants a header on GET; the audits know nothing of it, so it is added here.
import { auditServer } from "graphql-http";

const url = process.argv[2];
const results = await auditServer({
  url,
  fetchFn: (input, init = {}) => {
    const headers = new Headers(init.headers);
    headers.set("apollo-require-preflight", "true");
    return fetch(input, { ...init, headers });
  },
});
let bad = 0;
for (const result of results) {
  const line = `${result.status.padEnd(6)} ${result.id} ${result.name}`;
  console.log(result.status === "ok" ? line : `${line}: ${result.reason}`);
  if (result.status !== "ok") bad += 1;
}
console.log(`${results.length - bad} of ${results.length} audits hold`);
process.exit(bad === 0 ? 0 : 1);
