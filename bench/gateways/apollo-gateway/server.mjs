// Apollo Gateway behind Apollo Server's own HTTP server: node server.mjs SUPERGRAPH PORT
import { readFileSync } from "node:fs";
import { ApolloGateway, RemoteGraphQLDataSource } from "@apollo/gateway";
import { ApolloServer } from "@apollo/server";
import { startStandaloneServer } from "@apollo/server/standalone";

const [supergraph, port] = process.argv.slice(2);

class Forwarding extends RemoteGraphQLDataSource {
  willSendRequest({ request, context }) {
    if (context.authorization) request.http.headers.set("authorization", context.authorization);
  }
}

const gateway = new ApolloGateway({
  supergraphSdl: readFileSync(supergraph, "utf8"),
  buildService: ({ url }) => new Forwarding({ url }),
});
const server = new ApolloServer({ gateway, csrfPrevention: false, introspection: true });
await startStandaloneServer(server, {
  listen: { host: "127.0.0.1", port: Number(port) },
  context: async ({ req }) => ({ authorization: req.headers.authorization }),
});
