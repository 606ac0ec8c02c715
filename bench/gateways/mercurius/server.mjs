// Mercurius as a gateway, with its just-in-time compiler on: node server.mjs SUBGRAPHS PORT
import { readFileSync } from "node:fs";
import Fastify from "fastify";
import mercuriusGateway from "@mercuriusjs/gateway";

const [subgraphs, port] = process.argv.slice(2);
const app = Fastify({ logger: false });
app.register(mercuriusGateway, {
  jit: 1,
  gateway: {
    services: JSON.parse(readFileSync(subgraphs, "utf8")).map(({ name, url, sdl }) => ({
      name,
      url,
      schema: readFileSync(sdl, "utf8"),
      mandatory: true,
      keepAlive: 60_000,
      connections: 100,
      rewriteHeaders: (headers) => (headers.authorization ? { authorization: headers.authorization } : {}),
    })),
  },
});
await app.listen({ host: "127.0.0.1", port: Number(port) });
