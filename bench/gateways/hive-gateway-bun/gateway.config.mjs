export const gatewayConfig = {
  maskedErrors: false,
  propagateHeaders: {
    fromClientToSubgraphs({ request }) {
      return { authorization: request.headers.get("authorization") ?? "" };
    },
  },
};
