// Starts GraphiQL against the endpoint named by the page.
// `?query=`, `?variables=` and `?operationName=` in the address open that operation, so that links can be shared.
(function () {
  "use strict";
  var place = document.getElementById("graphiql");
  var address = new URLSearchParams(window.location.search);
  var properties = {
    fetcher: GraphiQL.createFetcher({
      url: new URL(place.dataset.endpoint, window.location.origin).href,
    }),
    defaultEditorToolsVisibility: true,
    shouldPersistHeaders: false,
  };
  if (place.dataset.query) properties.defaultQuery = place.dataset.query;
  if (address.get("query")) properties.query = address.get("query");
  if (address.get("variables")) properties.variables = address.get("variables");
  if (address.get("operationName")) properties.operationName = address.get("operationName");
  ReactDOM.createRoot(place).render(React.createElement(GraphiQL, properties));
})();
