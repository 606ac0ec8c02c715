// Starts GraphiQL against the endpoint named by the page.
// `?query=`, `?variables=` and `?operationName=` in the address open that operation, so that links can be shared.
(function () {
  "use strict";
  var place = document.getElementById("graphiql");
  var address = new URLSearchParams(window.location.search);
  var endpoint = new URL(place.dataset.endpoint, window.location.origin).href;
  var h = React.createElement;

  // What the gateway offers: whether the schema is shown, which headers ask for plan and trace, which schema it is.
  var offered = { introspection: true, plan: null, trace: null, schema: null };
  // What the last answer said about its plan and its trace.
  var last = { plan: null, trace: null, asked: false };
  var listeners = new Set();
  function learn(next) {
    last = next;
    listeners.forEach(function (listener) { listener(); });
  }

  // Whether the operation that is to run is a subscription.
  function isSubscription(parameters, options) {
    var document = options && options.documentAST;
    return !!document && document.definitions.some(function (definition) {
      var name = definition.name && definition.name.value;
      return definition.operation === "subscription" && (!parameters.operationName || name === parameters.operationName);
    });
  }
  // The data of a server-sent event, or null for a heartbeat; `done` if it is the last one.
  function readEvent(text) {
    var event = { done: false, data: "" };
    text.split("\n").forEach(function (line) {
      if (line === "event: complete") event.done = true;
      else if (line.startsWith("data:")) event.data += line.slice(5).trim();
    });
    return event;
  }
  // The events of a subscription, as server-sent events. A stream that ends without a last word is opened again: another
  // schema is served, or the gateway has started anew.
  function subscribe(headers, body) {
    var stopping = new AbortController();
    var reader = null, text = "", over = false;
    var decoder = new TextDecoder();
    function open() {
      text = "";
      return fetch(endpoint, { method: "POST", headers: headers, body: body, signal: stopping.signal }).then(function (answer) {
        if ((answer.headers.get("content-type") || "").startsWith("text/event-stream")) {
          reader = answer.body.getReader();
          return read();
        }
        over = true;
        return answer.json().then(function (json) { return { done: false, value: json }; });
      });
    }
    function read() {
      var end = text.indexOf("\n\n");
      if (end >= 0) {
        var event = readEvent(text.slice(0, end));
        text = text.slice(end + 2);
        if (event.done) {
          over = true;
          return { done: true, value: undefined };
        }
        return event.data ? { done: false, value: JSON.parse(event.data) } : read();
      }
      return reader.read().then(function (piece) {
        if (!piece.done) {
          text += decoder.decode(piece.value, { stream: true });
          return read();
        }
        return new Promise(function (resolve) { setTimeout(resolve, 1000); }).then(open);
      });
    }
    function ended(error) {
      if (stopping.signal.aborted) return { done: true, value: undefined };
      throw error;
    }
    var events = {
      next: function () {
        if (over || stopping.signal.aborted) return Promise.resolve({ done: true, value: undefined });
        return Promise.resolve().then(reader ? read : open).catch(ended);
      },
      return: function () {
        stopping.abort();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
    events[Symbol.asyncIterator] = function () { return events; };
    return events;
  }

  // One POST for every operation; subscriptions are answered with a stream.
  function fetcher(parameters, options) {
    var headers = Object.assign(
      { "content-type": "application/json", accept: "application/graphql-response+json, application/json;q=0.9" },
      (options && options.headers) || {}
    );
    if (isSubscription(parameters, options)) {
      return subscribe(Object.assign({}, headers, { accept: "text/event-stream" }), JSON.stringify(parameters));
    }
    var isSchema = parameters.operationName === "IntrospectionQuery";
    if (!isSchema && offered.plan) headers[offered.plan] = "true";
    if (!isSchema && offered.trace) headers[offered.trace] = "true";
    return fetch(endpoint, { method: "POST", headers: headers, body: JSON.stringify(parameters) })
      .then(function (answer) { return answer.json(); })
      .then(function (json) {
        if (isSchema || Array.isArray(json)) return json;
        var extensions = json.extensions || {};
        learn({ plan: extensions.apolloQueryPlan || null, trace: extensions.ogiveTrace || null, asked: true });
        // They have a tab of their own.
        delete extensions.apolloQueryPlan;
        delete extensions.ogiveTrace;
        if (json.extensions && Object.keys(extensions).length === 0) delete json.extensions;
        return json;
      });
  }

  function milliseconds(micros) { return (micros / 1000).toFixed(2) + " ms"; }
  function traceRows(trace) {
    var stops = trace.stops.map(function (stop) {
      return { name: stop.name, start: stop.startMicros, took: stop.durationMicros, more: "" };
    });
    var requests = trace.subgraphRequests.map(function (request) {
      var more = [request.status, request.code, request.bytes + " B", request.tries > 1 ? request.tries + " tries" : null];
      return {
        name: "→ " + request.subgraph, start: request.startMicros, took: request.durationMicros,
        more: more.filter(Boolean).join(", "),
      };
    });
    var rows = stops.concat(requests);
    var end = Math.max.apply(null, rows.map(function (row) { return row.start + row.took; }).concat(1));
    return rows.map(function (row, index) {
      return h("tr", { key: index },
        h("td", null, row.name),
        h("td", { className: "ogive-bar" }, h("span", {
          style: { marginLeft: (100 * row.start) / end + "%", width: Math.max(0.5, (100 * row.took) / end) + "%" },
        })),
        h("td", null, milliseconds(row.took)),
        h("td", null, row.more));
    });
  }
  function PlanAndTrace() {
    var seen = React.useSyncExternalStore(
      function (listener) { listeners.add(listener); return function () { listeners.delete(listener); }; },
      function () { return last; }
    );
    var say = function (text) { return h("p", null, text); };
    var plan = !offered.plan
      ? say("Plans are not shown here: query_planning.expose.enabled is off. `ogive dev` shows them.")
      : seen.plan ? h("pre", { className: "ogive-plan" }, seen.plan.text)
      : say(seen.asked ? "The last answer came without a plan." : "Run an operation to see its plan.");
    var trace = !offered.trace
      ? say("Traces are not shown here: telemetry.execution_trace.enabled is off, or needs a secret.")
      : seen.trace ? h("table", { className: "ogive-trace" }, h("tbody", null, traceRows(seen.trace)))
      : say(seen.asked ? "The last answer came without a trace." : "Run an operation to see where the time goes.");
    return h("section", { className: "ogive-tab" },
      h("div", { className: "graphiql-doc-explorer-title" }, "Plan"), plan,
      h("div", { className: "graphiql-doc-explorer-title" }, "Trace"), trace);
  }
  function Icon() {
    return h("svg", { viewBox: "0 0 24 24", fill: "none", stroke: "currentColor", strokeWidth: 1.5, "aria-hidden": true },
      h("circle", { cx: 5, cy: 12, r: 2.5 }), h("circle", { cx: 19, cy: 5, r: 2.5 }), h("circle", { cx: 19, cy: 19, r: 2.5 }),
      h("path", { d: "M7.5 11 16.5 6M7.5 13l9 5" }));
  }
  var plugins = [{ title: "Plan and trace", icon: Icon, content: PlanAndTrace }];

  var root = ReactDOM.createRoot(place);
  function render() {
    var properties = {
      fetcher: fetcher,
      plugins: plugins,
      defaultEditorToolsVisibility: true,
      shouldPersistHeaders: false,
    };
    // Without introspection there is nothing to fetch.
    if (!offered.introspection) properties.schema = null;
    if (place.dataset.query) properties.defaultQuery = place.dataset.query;
    if (address.get("query")) properties.query = address.get("query");
    if (address.get("variables")) properties.variables = address.get("variables");
    if (address.get("operationName")) properties.operationName = address.get("operationName");
    root.render(h(GraphiQL, properties));
    var closed = document.getElementById("no-schema");
    closed.hidden = offered.introspection;
  }

  // Another schema, or other options: looked up every two seconds while somebody looks at the page.
  function ask() {
    return fetch(place.dataset.state, { cache: "no-store" }).then(function (answer) { return answer.json(); });
  }
  function look() {
    var looked = document.hidden ? Promise.resolve() : ask().then(function (next) {
      var before = offered;
      offered = next;
      if (before.introspection !== next.introspection) render();
      else if (before.schema !== next.schema && next.introspection) {
        // GraphiQL's own button: it keeps what is in the editors.
        var again = document.querySelector('button[aria-label="Re-fetch GraphQL schema"]');
        if (again) again.click();
      }
    });
    looked.catch(function () {}).finally(function () { setTimeout(look, 2000); });
  }
  ask().then(function (next) { offered = next; }).catch(function () {}).finally(function () {
    render();
    setTimeout(look, 2000);
  });

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
  function lookAtNotice() {
    fetch(notice.dataset.notice, { cache: "no-store" })
      .then(function (answer) { return answer.json(); })
      .then(show)
      .catch(function () {})
      .finally(function () { setTimeout(lookAtNotice, 1000); });
  }
  lookAtNotice();
})();
