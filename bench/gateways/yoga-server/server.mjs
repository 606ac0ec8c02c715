// GraphQL Yoga with its own data or before REST services: node server.mjs SCHEMA PORT [REST_ADDRESS]
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { makeExecutableSchema } from "@graphql-tools/schema";
import { createYoga } from "graphql-yoga";
import { restResolvers } from "./rest.mjs";
import { resolvers } from "./store.mjs";

const [schemaFile, port, rest] = process.argv.slice(2);
const typeDefs = readFileSync(schemaFile, "utf8");
const own = typeDefs.includes("allProducts") ? restResolvers(`http://${rest}`) : resolvers;
const schema = makeExecutableSchema({ typeDefs, resolvers: own });
const yoga = createYoga({ schema, logging: false, graphiql: false, landingPage: false });
createServer(yoga).listen(Number(port), "127.0.0.1");
