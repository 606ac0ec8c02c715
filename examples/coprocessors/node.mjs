// A coprocessor in Node, without any package: API keys become tenants.
//
//   PORT=8081 node node.mjs
import { createServer } from "node:http";

const tenants = new Map([["tenant-7", "7"]]);

const stages = {
  // Ends requests without a key that is known; all others are told to subgraphs as a tenant.
  RouterRequest(message) {
    const [key] = message.headers["x-api-key"] ?? [];
    const tenant = tenants.get(key);
    if (tenant === undefined) {
      message.control = { break: 401 };
      message.headers = {};
      message.body = JSON.stringify({
        errors: [{ message: "who asks?", extensions: { code: "UNAUTHENTICATED" } }],
      });
      return message;
    }
    message.headers["x-tenant"] = [tenant];
    delete message.headers["x-api-key"];
    message.context.entries["example::tenant"] = tenant;
    return message;
  },
  // Says in the response whose it is.
  RouterResponse(message) {
    message.headers["x-tenant"] = [message.context.entries["example::tenant"]];
    return message;
  },
};

const server = createServer((request, response) => {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    const message = JSON.parse(Buffer.concat(pieces).toString());
    const answer = (stages[message.stage] ?? ((same) => same))(message);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(answer));
  });
});
server.listen(Number(process.env.PORT ?? 8081), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
