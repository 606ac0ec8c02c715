//! What would leave this machine in the clear ([`Config::note_clear_text`]): secrets, and who a coprocessor says is there.

use ogive_base::{host_of, is_loopback_host};

use crate::{
    Config,
    events::{BrokerTlsOptions, NatsProviderOptions, RedisProviderOptions},
    scalars::has_user,
};

/// Where something secret is sent.
struct Sent<'c> {
    /// What is secret, as a key of the configuration.
    what: &'c str,
    /// Whether there is anything secret, apart from what the URL itself has.
    is_secret: bool,
    url: &'c str,
}

impl Sent<'_> {
    fn is_in_the_clear(&self) -> bool {
        let is_plain = ["http://", "redis://", "nats://"]
            .iter()
            .any(|scheme| self.url.starts_with(scheme));
        let is_secret = self.is_secret || has_user(self.url);
        is_plain && is_secret && !is_loopback_host(host_of(self.url))
    }
}

impl Config {
    /// A sentence for each secret that everybody on the way to another machine can read.
    pub(crate) fn note_clear_text(&self) -> Vec<String> {
        let sent = self.sent_to_services().into_iter();
        let sent = sent.chain(self.sent_to_redis()).chain(self.sent_to_nats());
        let open = sent.filter(Sent::is_in_the_clear).map(|sent| sent.what);
        let mut open: Vec<&str> = open.collect();
        open.dedup();
        let secrets = open.into_iter().map(|what| {
            format!(
                "everybody on the way can read `{what}`: the other machine is not asked over TLS"
            )
        });
        let mut notes: Vec<String> = secrets.collect();
        notes.extend(self.note_open_coprocessor());
        notes.extend(self.note_open_kafka());
        notes
    }

    fn sent_to_services(&self) -> Vec<Sent<'_>> {
        let exporters = &self.telemetry.exporters;
        let (metrics, tracing) = (&exporters.metrics.otlp, &exporters.tracing.otlp);
        let mut sent = vec![
            Sent {
                what: "telemetry.exporters.metrics.otlp.headers",
                is_secret: metrics.enabled && !metrics.headers.is_empty(),
                url: &metrics.endpoint.0,
            },
            Sent {
                what: "telemetry.exporters.tracing.otlp.headers",
                is_secret: tracing.enabled && !tracing.headers.is_empty(),
                url: &tracing.endpoint.0,
            },
        ];
        sent.extend(self.usage.otlp.iter().map(|otlp| Sent {
            what: "usage.otlp.headers",
            is_secret: self.usage.enabled && !otlp.headers.is_empty(),
            url: &otlp.endpoint.0,
        }));
        sent.extend(self.usage.hive.iter().map(|hive| Sent {
            what: "usage.hive.token",
            is_secret: self.usage.enabled && !hive.token.0.is_empty(),
            url: &hive.endpoint.0,
        }));
        sent
    }

    fn sent_to_redis(&self) -> Vec<Sent<'_>> {
        let store = self.store.redis.iter().flat_map(|redis| {
            redis.urls.iter().map(|url| Sent {
                what: "store.redis.password",
                is_secret: !redis.password.0.is_empty(),
                url,
            })
        });
        // The first URL is used.
        let of_events = |provider: &'_ RedisProviderOptions| !provider.urls.is_empty();
        let providers = self.events.providers.redis.iter();
        let events = providers.filter(|one| of_events(one)).map(|one| Sent {
            what: "events.providers.redis[].authentication",
            is_secret: one.authentication.is_some(),
            url: &one.urls[0],
        });
        store.chain(events).collect()
    }

    fn sent_to_nats(&self) -> Vec<Sent<'_>> {
        let providers = self.events.providers.nats.iter();
        let open = providers.filter(|one| !speaks_tls(one.tls.as_ref()));
        let sent = |one: &'_ NatsProviderOptions| {
            let known = &one.authentication;
            known.user_info.is_some() || !known.token.0.is_empty()
        };
        open.flat_map(|one| {
            let is_secret = sent(one);
            one.url.0.split(',').map(move |url| Sent {
                what: "events.providers.nats[].authentication",
                is_secret,
                url: url.trim(),
            })
        })
        .collect()
    }

    fn note_open_coprocessor(&self) -> Option<String> {
        let stages = self.coprocessor.stages();
        let urls = stages.iter().map(|(_, stage)| &stage.url);
        let mut urls = urls.chain([&self.coprocessor.url]).flatten();
        let open =
            urls.any(|url| url.0.starts_with("http://") && !is_loopback_host(host_of(&url.0)));
        open.then(|| {
            "everybody on the way can read what the coprocessor is sent, credentials included, and say who callers are in its \
             place: `coprocessor.url` is an `http://` URL of another machine; use https, or a coprocessor on this machine"
                .to_owned()
        })
    }

    fn note_open_kafka(&self) -> Option<String> {
        let is_near = |broker: &String| is_loopback_host(host_of(broker));
        let mut providers = self.events.providers.kafka.iter();
        let open = providers.any(|one| {
            one.authentication.sasl_plain.is_some()
                && !speaks_tls(one.tls.as_ref())
                && !one.brokers.iter().all(is_near)
        });
        open.then(|| {
            "everybody on the way can read `events.providers.kafka[].authentication.sasl_plain`: the other machine is not asked \
             over TLS; set `tls`"
                .to_owned()
        })
    }
}

fn speaks_tls(tls: Option<&BrokerTlsOptions>) -> bool {
    tls.is_some_and(|tls| tls.enabled)
}

#[cfg(test)]
mod tests {
    fn notes(text: &str) -> Vec<String> {
        let config = crate::load(ogive_base::SourceId(0), text, &|_| None);
        let notes = config
            .unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
            .notes();
        let mut notes: Vec<String> = notes
            .into_iter()
            .filter(|note| note.starts_with("everybody on the way"))
            .collect();
        notes.sort();
        notes
    }

    #[test]
    fn secrets_in_the_clear_are_reported_and_this_machine_may_have_them() {
        for (text, key) in [
            (
                "coprocessor: { url: 'http://HOST:8081', router: { request: { headers: true } } }",
                "what the coprocessor is sent",
            ),
            (
                "coprocessor: { router: { request: { headers: true, url: 'http://HOST/' } } }",
                "what the coprocessor is sent",
            ),
            (
                "usage: { enabled: true, hive: { endpoint: 'http://HOST/usage', token: S3CR3T } }",
                "`usage.hive.token`",
            ),
            (
                "store: { redis: { urls: ['redis://HOST:6379'], password: S3CR3T } }",
                "`store.redis.password`",
            ),
            (
                "store: { redis: { urls: ['redis://:S3CR3T@HOST:6379'] } }",
                "`store.redis.password`",
            ),
            (
                "events: { providers: { nats: [{ url: 'nats://HOST:4222', authentication: { token: S3CR3T } }] } }",
                "`events.providers.nats[].authentication`",
            ),
            (
                "events: { providers: { nats: [{ url: 'nats://S3CR3T@HOST:4222' }] } }",
                "`events.providers.nats[].authentication`",
            ),
            (
                "events: { providers: { redis: [{ urls: ['redis://u:S3CR3T@HOST'] }] } }",
                "`events.providers.redis[].authentication`",
            ),
            (
                "events: { providers: { kafka: [{ brokers: ['HOST:9092'], authentication: { sasl_plain: { username: u, password: S3CR3T } } }] } }",
                "`events.providers.kafka[].authentication.sasl_plain`",
            ),
        ] {
            let found = notes(&text.replace("HOST", "10.1.2.3"));
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].contains(key), "{text}: {found:?}");
            assert!(!found[0].contains("S3CR3T"), "{found:?}");
            for near in ["localhost", "127.0.0.1", "[::1]"] {
                let found = notes(&text.replace("HOST", near));
                assert!(found.is_empty(), "{text} at {near}: {found:?}");
            }
        }
    }

    #[test]
    fn what_is_encrypted_or_not_secret_is_not_reported() {
        for text in [
            "coprocessor: { url: 'https://a/', router: { request: { headers: true } } }",
            "coprocessor: { url: 'unix:///run/a.sock', router: { request: { headers: true } } }",
            "store: { redis: { urls: ['redis://a:6379'] } }",
            "store: { redis: { urls: ['rediss://a:6379'], password: S3CR3T } }",
            "events: { providers: { nats: [{ url: 'tls://a:4222', authentication: { token: S3CR3T } }] } }",
            "events: { providers: { nats: [{ url: 'nats://a:4222', authentication: { token: S3CR3T }, tls: {} }] } }",
        ] {
            let found = notes(text);
            assert!(found.is_empty(), "{text}: {found:?}");
        }
    }
}
