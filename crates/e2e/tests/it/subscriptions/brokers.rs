//! Events from message brokers, from a real server to a client.

use std::time::{Duration, Instant};

use ogive_compose::{ComposeOptions, SubgraphInput, compose};
use ogive_config::Url;
use ogive_testbase::{left_out, runs};

use super::{
    broker_servers::{NatsClient, RedisClient, Server},
    feed::Feed,
    over_http::{Client, event},
};
use crate::{
    graph::{Served, config, state},
    http_client::post,
};

/// What can go wrong with a message broker: fault, code, what becomes of the subscription.
pub(crate) const BROKER_FAULTS: [(&str, &str, &str); 12] = [
    (
        "it is away when somebody subscribes",
        "SUBREQUEST_STREAM_LOST",
        "it fails once the time-out of the subgraph has passed",
    ),
    (
        "NATS or Redis is restarted",
        "",
        "it goes on; log and metrics say that events may have been missed",
    ),
    (
        "Kafka, or NATS with a durable position, is restarted",
        "",
        "it goes on where it was; events may come twice",
    ),
    (
        "it stays away",
        "SUBREQUEST_STREAM_LOST",
        "it ends after `max_reconnect_attempts`",
    ),
    (
        "events come faster than they are taken, from NATS or Redis",
        "SUBREQUEST_STREAM_OVERFLOW",
        "it ends behind what waited; others go on",
    ),
    (
        "an event is no JSON",
        "EVENT_MALFORMED",
        "the client is told in its place; it goes on",
    ),
    (
        "an event is larger than `response_max_bytes`",
        "EVENT_MALFORMED",
        "the client is told in its place; it goes on",
    ),
    (
        "an event has no key, or is of another type",
        "EVENT_INCOMPLETE",
        "the client is told in its place; it goes on",
    ),
    (
        "the configuration does not have it",
        "EVENT_PROVIDER_UNKNOWN",
        "it fails; the start has warned",
    ),
    (
        "there is no such stream or topic, or no right to it",
        "SUBREQUEST_STREAM_REFUSED",
        "it fails",
    ),
    (
        "an argument would widen the name of a subject",
        "EVENT_ARGUMENT_INVALID",
        "it fails, and the broker is not asked",
    ),
    (
        "it is away when something is published",
        "",
        "`success` is false, and the log says why",
    ),
];

const SSE: &str = "text/event-stream";
const ADDED: &str = "subscription Added { added(of: \"7\") { id text } }";
const TEXTS: &str = r#"
extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
type Query { ping: Int }
type Review @key(fields: "id") { id: ID! text: String }
"#;
const NO_NATS: &str = "`nats-server` is not installed";
/// For what fails once its time is over.
const SOON: &str = "traffic_shaping: { all: { timeout: 2s } }\n";

/// A gateway before an event subgraph and one that knows the rest.
struct Evented {
    served: Served,
    feed: Feed,
    supergraph: String,
    config: ogive_config::Config,
}

impl Evented {
    fn with(events: &str, yaml: &str) -> Evented {
        Evented::trying(events, yaml, 20)
    }
    /// Tries so often to reach a broker that was lost.
    fn trying(events: &str, yaml: &str, attempts: u32) -> Evented {
        let subscription =
            format!("enabled: true, reconnect_delay: 100ms, max_reconnect_attempts: {attempts}");
        Evented::plain(
            events,
            &format!("subscription: {{ {subscription} }}\n{yaml}"),
        )
    }
    /// With all options as they are given.
    fn plain(events: &str, yaml: &str) -> Evented {
        let shown = format!("include_subgraph_errors: {{ all: true }}\n{yaml}");
        Evented::secretive(events, &shown)
    }
    /// Errors of subgraphs are for operators alone.
    fn secretive(events: &str, yaml: &str) -> Evented {
        let feed = Feed::start();
        let mut config = config(yaml);
        super::unhurried(&mut config);
        let review = "type Review @key(fields: \"id\", resolvable: false) { id: ID! @external }";
        let events = format!("{events}\n{review}");
        let inputs = [("events", events.as_str()), ("texts", TEXTS)];
        let inputs = inputs.map(|(name, sdl)| SubgraphInput { name, url: "", sdl });
        let url = Url(format!("{}/texts", feed.url()));
        config.override_subgraph_url.insert("texts".to_owned(), url);
        let composed = compose(&inputs, &ComposeOptions::default());
        let supergraph = composed.supergraph_sdl;
        let supergraph = supergraph.unwrap_or_else(|| panic!("{:#?}", composed.errors));
        let served = Served::start(state(&supergraph, &config), &config);
        Evented {
            served,
            feed,
            supergraph,
            config,
        }
    }
    fn subscribe(&self, query: &str) -> Client {
        Client::subscribe(self.served.address, SSE, query)
    }
    fn counts(&self) -> ogive_gateway::subscribe::sources::SubscriptionCounts {
        self.served.gateway.subscriptions()
    }
}

/// Waits until something holds.
fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::yield_now();
    }
}

/// Waits until somebody hears a subject of NATS: then the client gets one event, which is taken.
fn heard(nats: &mut NatsClient, subject: &str, client: &mut Client) {
    let probe = "{\"__typename\":\"Review\",\"id\":\"probe\"}";
    wait("nobody subscribed", || nats.is_heard(subject, probe));
    assert_eq!(next(client), event("probe"));
}

/// The next event.
fn next(client: &mut Client) -> String {
    let found = client.until("}\n\n");
    found.trim_start_matches(":\n\n").to_owned()
}

fn review(id: &str) -> String {
    format!("{{\"__typename\":\"Review\",\"id\":\"{id}\",\"more\":[1]}}")
}

const NATS: &str = "type Subscription { added(of: ID!): Review! @edfs__natsSubscribe(subjects: [\"reviews.{{ args.of }}\"]) }";

fn nats_yaml(server: &Server) -> String {
    format!(
        "events: {{ providers: {{ nats: [{{ url: 'nats://{}' }}] }} }}\n",
        server.address
    )
}

#[test]
fn an_event_of_nats_reaches_a_client_with_what_other_subgraphs_know() {
    if !runs("nats-server") {
        return left_out(NO_NATS);
    }
    let server = Server::nats(&[]);
    let graph = Evented::with(NATS, &nats_yaml(&server));
    let mut client = graph.subscribe(ADDED);
    let mut nats = NatsClient::connect(server.address);
    heard(&mut nats, "reviews.7", &mut client);
    for id in ["1", "2", "3"] {
        nats.publish("reviews.8", &review("other"));
        nats.publish("reviews.7", &review(id));
        assert_eq!(next(&mut client), event(id));
    }
    assert_eq!(graph.feed.asked_of(), "/texts");
}

#[test]
fn a_subscription_lasts_while_nats_is_restarted_and_ends_with_a_code_if_it_stays_away() {
    if !runs("nats-server") {
        return left_out(NO_NATS);
    }
    let mut server = Server::nats(&[]);
    let graph = Evented::with(NATS, &nats_yaml(&server));
    let mut client = graph.subscribe(ADDED);
    let mut nats = NatsClient::connect(server.address);
    heard(&mut nats, "reviews.7", &mut client);
    server.stop();
    server.start();
    let mut nats = NatsClient::connect(server.address);
    heard(&mut nats, "reviews.7", &mut client);
    nats.publish("reviews.7", &review("1"));
    assert_eq!(next(&mut client), event("1"));

    let impatient = Evented::trying(NATS, &nats_yaml(&server), 0);
    let mut client = impatient.subscribe("subscription Added { added(of: \"8\") { id text } }");
    heard(&mut nats, "reviews.8", &mut client);
    server.stop();
    let rest = client.rest();
    assert!(rest.contains("SUBREQUEST_STREAM_LOST"), "{rest}");
}

#[test]
fn what_cannot_be_heard_is_an_error_with_a_code() {
    let nowhere = "events: { providers: { nats: [{ url: 'nats://127.0.0.1:1' }] } }\ntraffic_shaping: { all: { timeout: 500ms } }\n";
    let unknown = "events: { providers: { nats: [{ id: other, url: 'nats://127.0.0.1:1' }] } }\n";
    for (yaml, query, code) in [
        (nowhere, ADDED, "SUBREQUEST_STREAM_LOST"),
        (unknown, ADDED, "EVENT_PROVIDER_UNKNOWN"),
        (
            nowhere,
            "subscription { added(of: \"*\") { id } }",
            "EVENT_ARGUMENT_INVALID",
        ),
        (
            nowhere,
            "subscription { added(of: \"7.secret\") { id } }",
            "EVENT_ARGUMENT_INVALID",
        ),
    ] {
        let graph = Evented::with(NATS, yaml);
        let rest = graph.subscribe(query).rest();
        assert!(rest.contains(code), "{query}: {rest}");
        assert!(!rest.contains("127.0.0.1"), "{rest}");
    }
}

#[test]
fn events_that_are_none_are_told_and_the_subscription_goes_on() {
    if !runs("nats-server") {
        return left_out(NO_NATS);
    }
    let server = Server::nats(&[]);
    let yaml = nats_yaml(&server) + "traffic_shaping: { all: { response_max_bytes: 1000B } }\n";
    let graph = Evented::with(NATS, &yaml);
    let mut client = graph.subscribe(ADDED);
    let mut nats = NatsClient::connect(server.address);
    heard(&mut nats, "reviews.7", &mut client);
    let large = format!("{{\"id\":\"{}\"}}", "x".repeat(2_000));
    for (payload, code) in [
        ("no JSON", "EVENT_MALFORMED"),
        ("", "EVENT_MALFORMED"),
        (&*large, "EVENT_MALFORMED"),
        ("{\"__typename\":\"Review\"}", "EVENT_INCOMPLETE"),
        ("{\"__typename\":\"User\",\"id\":\"1\"}", "EVENT_INCOMPLETE"),
        ("1", "EVENT_INCOMPLETE"),
    ] {
        nats.publish("reviews.7", payload);
        let found = client.until("\n\n");
        assert!(found.contains(code), "{payload}: {found}");
    }
    // Where one type only can be meant it need not be said.
    nats.publish("reviews.7", "{\"id\":\"1\"}");
    assert_eq!(next(&mut client), event("1"));
}

#[test]
fn what_is_wrong_has_its_code_and_place_where_errors_of_subgraphs_are_not_shown() {
    let on = "subscription: { enabled: true }\ninclude_subgraph_errors: { all: false }\n";
    let nowhere = "events: { providers: { nats: [{ url: 'nats://127.0.0.1:1' }] } }\n";
    let graph = Evented::secretive(NATS, &format!("{on}{nowhere}"));
    let client = graph.subscribe("subscription { added(of: \"7.secret\") { id } }");
    let rest = client.rest();
    assert!(rest.contains("EVENT_ARGUMENT_INVALID"), "{rest}");
    assert!(rest.contains("The argument `of` has "), "{rest}");
    if !runs("nats-server") {
        return left_out(NO_NATS);
    }
    let server = Server::nats(&[]);
    let graph = Evented::secretive(NATS, &format!("{on}{}", nats_yaml(&server)));
    let mut client = graph.subscribe(ADDED);
    let mut nats = NatsClient::connect(server.address);
    heard(&mut nats, "reviews.7", &mut client);
    for (payload, code, path) in [
        ("no JSON", "EVENT_MALFORMED", r#"["added"]"#),
        ("1", "EVENT_INCOMPLETE", r#"["added"]"#),
        (
            "{\"__typename\":\"Review\"}",
            "EVENT_INCOMPLETE",
            r#"["added","id"]"#,
        ),
    ] {
        nats.publish("reviews.7", payload);
        let found = client.until("\n\n");
        assert!(found.contains(code), "{payload}: {found}");
        let path = format!("\"path\":{path}");
        assert!(found.contains(&path), "{payload}: {found}");
    }
}

#[test]
fn mutations_publish_and_queries_ask_over_nats() {
    if !runs("nats-server") {
        return left_out(NO_NATS);
    }
    let server = Server::nats(&[]);
    let events = "
        type Query { review(id: ID!): Review @edfs__natsRequest(subject: \"review.{{ args.id }}\") }
        type Mutation {
          add(id: ID!, input: In = {stars: 3}): edfs__PublishResult! @edfs__natsPublish(subject: \"add.{{ args.id }}\")
        }
        input In { stars: Int text: String }";
    let yaml = nats_yaml(&server) + "traffic_shaping: { all: { timeout: 20s } }\n";
    let graph = Evented::with(events, &yaml);
    let mut nats = NatsClient::connect(server.address);
    nats.subscribe("*.*");
    let address = graph.served.address;
    let mutation = "mutation { add(id: 1) { success } b: add(id: \"2\", input: {text: \"é\"}) { success __typename } }";
    let answer = post(address, mutation);
    let expected = serde_json::json!({"data": {
        "add": {"success": true},
        "b": {"success": true, "__typename": "edfs__PublishResult"},
    }});
    assert_eq!(answer.json(), expected);
    let first = (
        "add.1".to_owned(),
        String::new(),
        "{\"id\":\"1\",\"input\":{\"stars\":3}}".to_owned(),
    );
    assert_eq!(nats.next(), first);
    assert_eq!(nats.next().2, "{\"id\":\"2\",\"input\":{\"text\":\"é\"}}");

    let asking = std::thread::spawn(move || post(address, "{ review(id: 9) { id text } }"));
    let (subject, reply, payload) = nats.next();
    assert_eq!((&*subject, &*payload), ("review.9", "{\"id\":\"9\"}"));
    nats.publish(&reply, "{\"__typename\":\"Review\",\"id\":\"9\"}");
    let expected = serde_json::json!({"data": {"review": {"id": "9", "text": "text of 9"}}});
    assert_eq!(asking.join().unwrap().json(), expected);
    drop((nats, server));
    // What is written before it is noticed that nobody reads counts as published.
    let lost = serde_json::json!({"data": {"add": {"success": false}}});
    wait("it is published where nobody is", || {
        post(address, "mutation { add(id: 1) { success } }").json() == lost
    });
    let answer = post(address, "{ review(id: 9) { id } }");
    assert_eq!(answer.codes(), ["EVENT_BROKER_ERROR"]);
}

#[test]
fn a_durable_position_is_kept_over_subscriptions_gateways_and_restarts() {
    if !runs("nats-server") {
        return left_out(NO_NATS);
    }
    let mut server = Server::nats(&[]);
    let mut nats = NatsClient::connect(server.address);
    let stream = r#"{"name":"REVIEWS","subjects":["reviews.>"],"storage":"file"}"#;
    let made = nats.ask("$JS.API.STREAM.CREATE.REVIEWS", stream);
    assert!(made.contains("\"created\""), "{made}");
    let events = "type Subscription { added(of: ID!): Review! @edfs__natsSubscribe(
        subjects: [\"reviews.{{ args.of }}\", \"reviews.all\"],
        streamConfiguration: { consumerName: \"c\", streamName: \"REVIEWS\", consumerInactiveThreshold: 300 }) }";
    let yaml = nats_yaml(&server).replace("providers", "instance: one, providers");
    let graph = Evented::with(events, &yaml);
    let mut client = graph.subscribe(ADDED);
    for id in ["1", "2"] {
        nats.publish("reviews.7", &review(id));
        assert_eq!(next(&mut client), event(id));
    }
    // Nobody is subscribed; what comes waits for whoever comes next.
    drop(client);
    wait("somebody is subscribed", || graph.counts().sources == 0);
    nats.publish("reviews.7", &review("3"));
    let mut client = graph.subscribe(ADDED);
    assert_eq!(next(&mut client), event("3"));
    // The broker is away, and so is the gateway.
    server.stop();
    server.start();
    let mut nats = NatsClient::connect(server.address);
    nats.publish("reviews.all", &review("4"));
    // What the server forgot of our acknowledgements when it was killed comes again; nothing is missing.
    while next(&mut client) != event("4") {}
    drop(client);
    wait("somebody is subscribed", || graph.counts().sources == 0);
    nats.publish("reviews.7", &review("5"));
    drop(graph);
    let graph = Evented::with(events, &yaml);
    let mut client = graph.subscribe(ADDED);
    while next(&mut client) != event("5") {}
    // Another process has a position of its own.
    let other = Evented::with(events, &yaml.replace("one", "two"));
    let mut client = other.subscribe(ADDED);
    for id in ["1", "2", "3", "4", "5"] {
        assert_eq!(next(&mut client), event(id));
    }
    let missing = Evented::with(&events.replace("REVIEWS", "NONE"), &yaml);
    let rest = missing.subscribe(ADDED).rest();
    assert!(rest.contains("SUBREQUEST_STREAM_REFUSED"), "{rest}");
}

const REDIS: &str = "
    type Subscription {
      added(of: ID!): Review! @edfs__redisSubscribe(channels: [\"reviews.{{ args.of }}\"])
      any(id: [ID!] = [\"1\", \"2\"]): Review! @edfs__redisSubscribe(channels: [\"reviews.*\"])
        @openfed__subscriptionFilter(condition: { IN: { fieldPath: \"id\", values: [\"{{ args.id }}\"] } })
    }
    type Mutation { add(id: ID!): edfs__PublishResult! @edfs__redisPublish(channel: \"reviews.{{ args.id }}\") }";

#[test]
fn events_of_redis_are_heard_filtered_and_published_over_one_connection() {
    if !runs("redis-server") {
        return left_out("`redis-server` is not installed");
    }
    let mut server = Server::redis();
    let yaml = format!(
        "events: {{ providers: {{ redis: [{{ urls: ['redis://{}'] }}] }} }}\n",
        server.address
    );
    let graph = Evented::with(REDIS, &yaml);
    let mut redis = RedisClient::connect(server.address);
    let mut client = graph.subscribe(ADDED);
    let mut others = graph.subscribe("subscription { added(of: 7) { id } }");
    let mut any = graph.subscribe("subscription { added: any { id text } }");
    for client in [&mut client, &mut others, &mut any] {
        client.until(":\n\n");
    }
    // One connection hears: one subscription of each channel.
    let numbers = |redis: &mut RedisClient| {
        (
            redis.number_of("NUMSUB", "reviews.7"),
            redis.number_of("NUMPAT", ""),
        )
    };
    wait("nobody subscribed", || numbers(&mut redis) == (1, 1));
    wait("a client is not heard", || graph.counts().sources == 3);
    // Of two that hear one channel the second may not be there yet.
    wait("a client hears nothing", || {
        redis.command(&["PUBLISH", "reviews.7", &review("probe")]);
        client.has_something() && others.has_something()
    });
    assert_eq!(redis.command(&["PUBLISH", "reviews.7", &review("9")]), ":2");
    while next(&mut client) != event("9") {}
    while !next(&mut others).contains("{\"id\":\"9\"}") {}
    let lookups = graph.feed.lookups();
    // What the filter does not let through is fetched for nobody.
    for id in ["3", "4"] {
        assert_eq!(redis.command(&["PUBLISH", "reviews.8", &review(id)]), ":1");
    }
    assert_eq!(redis.command(&["PUBLISH", "reviews.8", &review("2")]), ":1");
    assert_eq!(next(&mut any), event("2"));
    assert_eq!(graph.feed.lookups(), lookups + 1);
    let answer = post(graph.served.address, "mutation { add(id: 7) { success } }");
    assert_eq!(
        answer.json(),
        serde_json::json!({"data": {"add": {"success": true}}})
    );
    assert_eq!(next(&mut client), event("7"));
    server.stop();
    server.start();
    let mut redis = RedisClient::connect(server.address);
    wait("nobody subscribed again", || numbers(&mut redis) == (1, 1));
    assert_eq!(redis.command(&["PUBLISH", "reviews.7", &review("1")]), ":2");
    assert_eq!(next(&mut client), event("1"));
    assert_eq!(next(&mut any), event("1"));
    drop((client, others));
    wait("somebody hears what nobody wants", || {
        numbers(&mut redis) == (0, 1)
    });
}

#[test]
fn events_of_kafka_are_heard_and_none_is_missing_after_a_restart() {
    if !runs("ogive-kafka") {
        return left_out("`ogive-kafka` is not installed (`go install .` in oracle/brokers)");
    }
    let mut server = Server::kafka("ogive-kafka");
    let events = "
        type Subscription { added(of: ID!): Review! @edfs__kafkaSubscribe(topics: [\"reviews\"])
          @openfed__subscriptionFilter(condition: { NOT: { IN: { fieldPath: \"id\", values: [\"other\"] } } }) }
        type Mutation {
          add(id: ID!): edfs__PublishResult! @edfs__kafkaPublish(topic: \"reviews\")
          lose(id: ID!): edfs__PublishResult! @edfs__kafkaPublish(topic: \"missing\")
        }";
    let yaml = format!(
        "events: {{ providers: {{ kafka: [{{ brokers: ['{}'] }}] }} }}\n",
        server.address
    );
    let graph = Evented::with(events, &yaml);
    let address = graph.served.address;
    let publish = |id: &str| {
        let answer = post(
            address,
            &format!("mutation {{ add(id: \"{id}\") {{ success }} }}"),
        );
        answer.json() == serde_json::json!({"data": {"add": {"success": true}}})
    };
    let mut client = graph.subscribe(ADDED);
    client.until(":\n\n");
    // Partitions are read from where they end when somebody begins to hear. A broker that is slow is tried again.
    wait("nothing is heard", || {
        publish("0") && client.has_something()
    });
    wait("nothing can be published", || publish("other"));
    wait("nothing can be published", || publish("1"));
    while next(&mut client) != event("1") {}
    server.stop();
    server.start();
    wait("nothing can be published", || publish("2"));
    while next(&mut client) != event("2") {}
    let lost = post(address, "mutation { lose(id: 1) { success } }");
    assert_eq!(
        lost.json(),
        serde_json::json!({"data": {"lose": {"success": false}}})
    );
    let missing = Evented::with(&events.replace("[\"reviews\"]", "[\"missing\"]"), &yaml);
    let rest = missing.subscribe(ADDED).rest();
    assert!(rest.contains("SUBREQUEST_STREAM_REFUSED"), "{rest}");
}

#[test]
fn a_reload_that_changes_nothing_keeps_what_is_heard() {
    if !runs("nats-server") {
        return left_out(NO_NATS);
    }
    let server = Server::nats(&[]);
    let graph = Evented::with(NATS, &nats_yaml(&server));
    let mut client = graph.subscribe(ADDED);
    let mut nats = NatsClient::connect(server.address);
    heard(&mut nats, "reviews.7", &mut client);
    graph
        .served
        .gateway
        .replace(state(&graph.supergraph, &graph.config));
    nats.publish("reviews.7", &review("1"));
    assert_eq!(next(&mut client), event("1"));
    assert_eq!(graph.counts().open, 1);
}

#[test]
fn brokers_are_told_who_we_are() {
    if !runs("nats-server") {
        return left_out(NO_NATS);
    }
    if !runs("redis-server") {
        return left_out("`redis-server` is not installed");
    }
    let token = Server::nats(&["--auth", "letmein"]);
    let user = Server::nats(&["--user", "ida", "--pass", "letmein"]);
    let redis = Server::redis();
    let mut admin = RedisClient::connect(redis.address);
    assert_eq!(
        admin.command(&[
            "ACL",
            "SETUSER",
            "ida",
            "on",
            ">letmein",
            "allcommands",
            "allchannels"
        ]),
        "+OK"
    );
    assert_eq!(admin.command(&["ACL", "SETUSER", "default", "off"]), "+OK");
    let events = "type Mutation {
        token: edfs__PublishResult! @edfs__natsPublish(subject: \"a\", providerId: \"token\")
        user: edfs__PublishResult! @edfs__natsPublish(subject: \"a\", providerId: \"user\")
        redis: edfs__PublishResult! @edfs__redisPublish(channel: \"a\")
        stranger: edfs__PublishResult! @edfs__redisPublish(channel: \"a\", providerId: \"stranger\")
        nobody: edfs__PublishResult! @edfs__natsPublish(subject: \"a\", providerId: \"nobody\")
    }";
    let yaml = format!(
        "events:\n  providers:\n    nats:\n      - {{ id: token, url: 'nats://{}', authentication: {{ token: letmein }} }}\n      \
         - {{ id: user, url: 'nats://{}', authentication: {{ user_info: {{ username: ida, password: letmein }} }} }}\n      \
         - {{ id: nobody, url: 'nats://{}' }}\n    redis:\n      \
         - {{ urls: ['redis://{}'], authentication: {{ username: ida, password: letmein }} }}\n      \
         - {{ id: stranger, urls: ['redis://{}'] }}\n",
        token.address, user.address, user.address, redis.address, redis.address
    );
    let graph = Evented::with(events, &yaml);
    // Whoever is not let in tries for as long as there is time.
    let quick = Evented::with(events, &format!("{yaml}{SOON}"));
    for (graph, field, is_known) in [
        (&graph, "token", true),
        (&graph, "user", true),
        (&graph, "redis", true),
        (&quick, "stranger", false),
        (&quick, "nobody", false),
    ] {
        let answer = post(
            graph.served.address,
            &format!("mutation {{ {field} {{ success }} }}"),
        );
        let expected = serde_json::json!({"data": {field: {"success": is_known}}});
        assert_eq!(answer.json(), expected);
    }
}

#[test]
fn brokers_are_spoken_to_over_tls() {
    if !runs("nats-server") {
        return left_out(NO_NATS);
    }
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let chain = params.self_signed(&key).unwrap().pem();
    let folder = std::env::temp_dir().join(format!("ogive-broker-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (chain_file, key_file) = (folder.join("chain.pem"), folder.join("key.pem"));
    std::fs::write(&chain_file, &chain).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    let (chain_file, key_file) = (chain_file.to_string_lossy(), key_file.to_string_lossy());
    let server = Server::nats(&["--tls", "--tlscert", &chain_file, "--tlskey", &key_file]);
    let events = "type Mutation {
        trusted: edfs__PublishResult! @edfs__natsPublish(subject: \"a\", providerId: \"trusted\")
        other: edfs__PublishResult! @edfs__natsPublish(subject: \"a\", providerId: \"other\")
    }";
    let address = server.address;
    let yaml = format!(
        "events:\n  providers:\n    nats:\n      \
         - {{ id: trusted, url: 'tls://{address}', tls: {{ certificate_authorities: '{chain_file}' }} }}\n      \
         - {{ id: other, url: 'tls://{address}' }}\n"
    );
    let graph = Evented::with(events, &yaml);
    let quick = Evented::with(events, &format!("{yaml}{SOON}"));
    for (graph, field, is_trusted) in [(&graph, "trusted", true), (&quick, "other", false)] {
        let answer = post(
            graph.served.address,
            &format!("mutation {{ {field} {{ success }} }}"),
        );
        assert_eq!(
            answer.json(),
            serde_json::json!({"data": {field: {"success": is_trusted}}})
        );
    }
    let _ = std::fs::remove_dir_all(folder);
}

#[tokio::test(flavor = "current_thread")]
async fn explaining_names_the_broker_and_the_subject() {
    let nowhere = "events: { providers: { nats: [{ url: 'nats://127.0.0.1:1' }] } }\n";
    let graph = Evented::with(NATS, nowhere);
    let input = ogive_gateway::ExplainInput {
        request: ogive_gateway::GraphqlRequest {
            query: ADDED.to_owned(),
            may_subscribe: true,
            ..Default::default()
        },
        headers: http::HeaderMap::new(),
        token: None,
        peer: ogive_base::Peer::Unix,
        is_executed: false,
        has_timings: false,
    };
    let text = graph.served.gateway.explain(input).await.text;
    let line = "fetch 0: `added` hears `reviews.{{ args.of }}` of nats `default`\n";
    assert!(text.contains(line), "{text}");
}

/// The example of `docs/events.md` with the demo's other subgraphs.
#[test]
fn the_documented_example_composes_and_its_events_reach_clients() {
    if !runs("nats-server") {
        return left_out(NO_NATS);
    }
    let page = include_str!("../../../../../docs/events.md");
    let example = include_str!("../../../../../examples/events/events.graphql");
    let shown = page
        .split("```graphql\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    assert!(example.ends_with(shown), "{shown}");
    let yaml = page
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let server = Server::nats(&[]);
    let products = "
        extend schema @link(url: \"https://specs.apollo.dev/federation/v2.3\", import: [\"@key\"])
        type Query { ping: Int }
        type Product @key(fields: \"sku\") { sku: ID! }";
    let mut config = config(&yaml.replace("127.0.0.1:4222", &server.address.to_string()));
    config.supergraph.introspection = true;
    let inputs = [("events", example), ("products", products)];
    let inputs = inputs.map(|(name, sdl)| SubgraphInput { name, url: "", sdl });
    let composed = compose(&inputs, &ComposeOptions::default());
    let supergraph = composed
        .supergraph_sdl
        .unwrap_or_else(|| panic!("{:#?}", composed.errors));
    let served = Served::start(state(&supergraph, &config), &config);
    let query = "subscription { productChanged(sku: \"HP-101\") { __typename sku } }";
    let mut client = Client::subscribe(served.address, SSE, query);
    let mut nats = NatsClient::connect(server.address);
    let probe = "{\"__typename\":\"Product\",\"sku\":\"HP-101\"}";
    wait("nobody subscribed", || {
        nats.is_heard("products.HP-101", probe)
    });
    assert!(
        client
            .until("}\n\n")
            .contains("{\"__typename\":\"Product\",\"sku\":\"HP-101\"}")
    );
    // What a mutation publishes is an event, too.
    let answer = post(
        served.address,
        "mutation { announce(sku: \"HP-101\", note: \"new\") { success } }",
    );
    assert_eq!(
        answer.json(),
        serde_json::json!({"data": {"announce": {"success": true}}})
    );
    assert!(client.until("}\n\n").contains("\"sku\":\"HP-101\""));
}

#[test]
fn a_burst_of_a_broker_arrives_whole_and_in_order() {
    const EVENTS: usize = 20_000;
    if !runs("nats-server") {
        return left_out(NO_NATS);
    }
    let server = Server::nats(&[]);
    let yaml = nats_yaml(&server).replace(
        "events:",
        "subscription: { enabled: true, queue_capacity: 50_000, queue_bytes: 64MiB }\nevents:",
    );
    let graph = Evented::plain(
        "type Subscription { added(of: ID!): Int @edfs__natsSubscribe(subjects: [\"n.{{ args.of }}\"]) }",
        &yaml,
    );
    let mut clients = Vec::new();
    let mut nats = NatsClient::connect(server.address);
    for _ in 0..5 {
        clients.push(graph.subscribe("subscription { added(of: 1) }"));
    }
    wait("nobody subscribed", || nats.is_heard("n.1", "-1"));
    wait("a client is not there", || graph.counts().open == 5);
    assert_eq!(graph.counts().sources, 1);
    nats.publish_all("n.1", (0..EVENTS).map(|n| n.to_string()));
    for client in &mut clients {
        for n in 0..EVENTS {
            let expected = format!("{{\"added\":{n}}}");
            let mut found = client.until("}\n\n");
            while n == 0 && found.contains("-1") {
                found = client.until("}\n\n");
            }
            assert!(found.contains(&expected), "{expected}: {found}");
        }
    }
    assert_eq!(graph.counts().dropped, 0);
}
