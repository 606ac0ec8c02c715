// Products, an offer for each, instalments for each, over REST.
import { Agent, request } from "undici";

const dispatcher = new Agent({ connections: 1024, keepAliveTimeout: 60_000 });

export function restResolvers(base) {
  const get = async (path) => {
    const { body } = await request(`${base}${path}`, { dispatcher });
    return body.json();
  };
  return {
    Query: { allProducts: () => get("/multiProducts") },
    Product: { offer: ({ id }) => get(`/offer?productId=${id}`) },
    Offer: { installments: ({ id }) => get(`/installments?offerId=${id}`) },
  };
}
