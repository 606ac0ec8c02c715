// Subgraphs of others that send events: prints their URLs as one line of JSON, and serves until its input ends.
import { createServer } from "node:http";
import { ApolloServer, HeaderMap } from "@apollo/server";
import { ApolloServerPluginSubscriptionCallback } from "@apollo/server/plugin/subscriptionCallback";
import * as graphql from "graphql";
import { useServer } from "graphql-ws/use/ws";
import { createSchema, createYoga } from "graphql-yoga";
import { SubscriptionServer } from "subscriptions-transport-ws";
import { WebSocketServer } from "ws";

const typeDefs = "type Query { a: Int } type Subscription { count(to: Int!): Int!, whoAmI: String, forever: Int }";
const resolvers = {
  Query: { a: () => 1 },
  Subscription: {
    count: {
      subscribe: async function* (_, { to }) {
        for (let count = 1; count <= to; count += 1) yield { count };
      },
    },
    whoAmI: {
      subscribe: async function* (_, __, context) {
        yield { whoAmI: context.who ?? "nobody" };
      },
    },
    forever: {
      subscribe: async function* () {
        yield { forever: 1 };
        await new Promise(() => {});
      },
    },
  },
};
const schema = createSchema({ typeDefs, resolvers });

const yoga = createYoga({
  schema,
  graphqlEndpoint: "/",
  logging: false,
  context: ({ request }) => ({ who: request.headers.get("authorization") }),
});
const http = createServer(yoga);

const modern = createServer();
const options = { schema, context: ({ connectionParams }) => ({ who: connectionParams?.authorization }) };
useServer(options, new WebSocketServer({ server: modern, path: "/" }));

const legacy = createServer();
SubscriptionServer.create(
  {
    schema,
    execute: graphql.execute,
    subscribe: graphql.subscribe,
    onConnect: (params) => ({ who: params.authorization }),
  },
  { server: legacy, path: "/" },
);

/** Serves requests by an Apollo Server. */
const serve = (apollo) => async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const headers = new HeaderMap();
  for (const [name, value] of Object.entries(request.headers)) headers.set(name, String(value));
  const answer = await apollo.executeHTTPGraphQLRequest({
    httpGraphQLRequest: {
      method: request.method,
      headers,
      body: JSON.parse(Buffer.concat(chunks).toString() || "null"),
      search: "",
    },
    context: async () => ({}),
  });
  response.writeHead(answer.status ?? 200, Object.fromEntries(answer.headers));
  if (answer.body.kind === "complete") response.end(answer.body.string);
  else {
    for await (const chunk of answer.body.asyncIterator) response.write(chunk);
    response.end();
  }
};
const apollo = new ApolloServer({ schema });
await apollo.start();
const both = createServer(serve(apollo));
useServer(options, new WebSocketServer({ server: both, path: "/" }));

// Its plugin sends events by requests, and tries each of them as often as it does by default.
const calling = new ApolloServer({ schema, plugins: [ApolloServerPluginSubscriptionCallback()] });
await calling.start();
const callback = createServer(serve(calling));

const urls = {};
for (const [name, server] of Object.entries({ yoga: http, modern, legacy, apollo: both, callback })) {
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  urls[name] = `http://127.0.0.1:${server.address().port}/`;
}
console.log(JSON.stringify(urls));
process.stdin.on("end", () => process.exit(0)).resume();
