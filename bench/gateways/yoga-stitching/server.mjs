// A supergraph stitched by @graphql-tools/federation, served by GraphQL Yoga: node server.mjs SUPERGRAPH PORT
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { getStitchedSchemaFromSupergraphSdl } from "@graphql-tools/federation";
import { createYoga } from "graphql-yoga";

const [supergraph, port] = process.argv.slice(2);
const schema = getStitchedSchemaFromSupergraphSdl({
  supergraphSdl: readFileSync(supergraph, "utf8"),
  batch: true,
  httpExecutorOpts: {
    headers: (request) => {
      const authorization = request?.context?.request?.headers.get("authorization");
      return authorization ? { authorization } : {};
    },
  },
});
const yoga = createYoga({ schema, logging: false, maskedErrors: false, graphiql: false, landingPage: false });
createServer(yoga).listen(Number(port), "127.0.0.1");
