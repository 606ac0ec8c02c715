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

  // In development: what is wrong with the subgraphs, above the editor, looked up every second.
  var notice = document.getElementById("notice");
  if (!notice.dataset.notice) return;
  var shown = "";
  function show(state) {
    var text = state.text || "";
    if (text === shown) return;
    shown = text;
    notice.hidden = text === "";
    notice.className = state.ok ? "warning" : "";
    notice.replaceChildren();
    var title = document.createElement("strong");
    title.textContent = state.ok
      ? "Some subgraphs do not answer"
      : "The subgraphs do not compose; the graph before serves on";
    var excerpt = document.createElement("pre");
    excerpt.textContent = text;
    notice.append(title, excerpt);
  }
  function look() {
    fetch(notice.dataset.notice, { cache: "no-store" })
      .then(function (answer) { return answer.json(); })
      .then(show)
      .catch(function () {})
      .finally(function () { setTimeout(look, 1000); });
  }
  look();
})();
