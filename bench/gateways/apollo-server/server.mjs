// Apollo Server with its own data or before REST services: node server.mjs SCHEMA PORT [REST_ADDRESS]
import { readFileSync } from "node:fs";
import { ApolloServer } from "@apollo/server";
import { startStandaloneServer } from "@apollo/server/standalone";
import { makeExecutableSchema } from "@graphql-tools/schema";
import { restResolvers } from "./rest.mjs";
import { resolvers } from "./store.mjs";

const [schemaFile, port, rest] = process.argv.slice(2);
const typeDefs = readFileSync(schemaFile, "utf8");
const own = typeDefs.includes("allProducts") ? restResolvers(`http://${rest}`) : resolvers;
const schema = makeExecutableSchema({ typeDefs, resolvers: own });
const server = new ApolloServer({ schema, csrfPrevention: false });
await startStandaloneServer(server, { listen: { host: "127.0.0.1", port: Number(port) } });
