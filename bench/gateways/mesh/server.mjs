// GraphQL Mesh's serving runtime on Node's HTTP server: node server.mjs SUPERGRAPH PORT
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createGatewayRuntime } from "@graphql-mesh/serve-runtime";

const [supergraph, port] = process.argv.slice(2);
const gateway = createGatewayRuntime({
  supergraph: readFileSync(supergraph, "utf8"),
  logging: false,
  maskedErrors: false,
  propagateHeaders: {
    fromClientToSubgraphs: ({ request }) => ({ authorization: request.headers.get("authorization") ?? "" }),
  },
});
createServer(gateway).listen(Number(port), "127.0.0.1");
