export const gatewayConfig = {
  maskedErrors: false,
  deferStream: {defer},
  {events}
  propagateHeaders: {
    fromClientToSubgraphs({ request }) {
      return { authorization: request.headers.get("authorization") ?? "" };
    },
  },
};
