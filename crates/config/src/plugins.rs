//! The options of `plugins`: WebAssembly components at the stages of a request.
//!
//! ```yaml
//! plugins:
//!   - name: tenants
//!     path: plugins/tenants.wasm
//!     permissions: { read_headers: [authorization], write_headers: [x-tenant] }
//! ```

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    num::NonZeroUsize,
};

use ogive_base::Span;
use ogive_selectors::{Condition, Selector};
use ogive_yaml::Node;
use ogive_yaml::tree::span;

use crate::{
    ByteSize, Config, Duration, HookCondition, OnErrorWord,
    coprocessor::HOOK_PLACES,
    decode::{Decode, Errors, section},
    reference::{Describe, OptionRow, Sample},
    scalars::nonzero,
};

section! {
    /// `plugins[]`
    pub struct PluginSection {
        /// What it is called in messages; needed, and no two are called the same.
        pub name: String = String::new(),
        /// File of the component; needed. It is watched.
        pub path: String = String::new(),
        /// The SHA-256 of the file in hexadecimal digits. Another file is refused.
        pub sha256: Option<String> = None,
        /// Where it is called, of `receive`, `operation`, `plan`, `subgraph_request`, `subgraph_response`, `executed`, `answer`
        /// and `respond`; default wherever it exports a hook.
        pub stages: Vec<String> = Vec::new(),
        /// For which requests it is called, wherever it is: `eq`, `gt`, `lt`, `contains`, `exists`, `not`, `all` and `any` on
        /// what is known at every stage, such as `{ exists: { request_header: x-key } }`. Decided before anything is lent to it.
        /// Default all.
        pub condition: Option<PluginCondition<0>> = None,
        /// The same for one stage each, in place of `condition` there, on what is known at that stage.
        pub conditions: PluginConditions = PluginConditions::default(),
        /// At which of them it is lent the body, which is a copy of it each time; default none.
        pub bodies: Vec<String> = Vec::new(),
        /// What it may see and change; what is not named it may not.
        pub permissions: PluginPermissions = PluginPermissions::default(),
        /// What it needs at most. A call that needs more ends, and counts as failed.
        pub limits: PluginLimits = PluginLimits::default(),
        /// What becomes of a request if it fails: `fail` ends it with status 500 and the code `PLUGIN_FAILED`, `continue` goes on
        /// as if it had not been called. Where it says who asks or decides policies, `fail` ends the request with status 503 and
        /// `AUTHENTICATION_UNAVAILABLE` or `POLICIES_UNAVAILABLE`, and with `continue` it has said nothing: nobody is known, and
        /// nothing holds. The operator is told either way. Where it keeps somebody out, leave `fail`. Default `fail`.
        pub on_error: OnErrorWord = OnErrorWord::Fail,
        /// When it is left alone for a while; meanwhile it counts as failed without being called.
        pub ejection: PluginEjection = PluginEjection::default(),
        /// A text that it can read, such as JSON.
        pub configuration: String = String::new(),
    }

    /// `plugins[].conditions`
    pub struct PluginConditions {
        /// At `receive`.
        pub receive: Option<PluginCondition<0>> = None,
        /// At `operation`.
        pub operation: Option<PluginCondition<2>> = None,
        /// At `plan`.
        pub plan: Option<PluginCondition<4>> = None,
        /// At `subgraph_request`.
        pub subgraph_request: Option<PluginCondition<6>> = None,
        /// At `subgraph_response`.
        pub subgraph_response: Option<PluginCondition<7>> = None,
        /// At `executed`.
        pub executed: Option<PluginCondition<5>> = None,
        /// At `answer`.
        pub answer: Option<PluginCondition<3>> = None,
        /// At `respond`.
        pub respond: Option<PluginCondition<1>> = None,
    }

    /// `plugins[].permissions`
    pub struct PluginPermissions {
        /// Headers that it may read; default none.
        pub read_headers: Vec<String> = Vec::new(),
        /// Headers that it may set, remove, and add to a response that it ends a request with; default none.
        pub write_headers: Vec<String> = Vec::new(),
        /// Entries of the context that it may read; default none.
        pub read_context: Vec<String> = Vec::new(),
        /// Entries of the context that it may write; default none. Who may write `apollo::authentication::jwt_claims` at `receive`
        /// decides who the caller is.
        pub write_context: Vec<String> = Vec::new(),
        /// Variables of the environment that it may read, as they are when it is loaded; default none.
        pub environment: Vec<String> = Vec::new(),
        /// Where its HTTP requests may go, and requests to subgraphs that it sends elsewhere (`set-uri`): `host` or `host:port`,
        /// exact names, over TLS; `http://host:port` where it is not. Default nowhere, and a component that imports `http` is
        /// refused then.
        pub hosts: Vec<String> = Vec::new(),
    }

    /// `plugins[].limits`
    pub struct PluginLimits {
        /// Most memory of one instance; default `64 MiB`.
        pub memory: ByteSize = ByteSize(64 << 20),
        /// Most instructions of one call, roughly; default 50,000,000.
        pub fuel: NonZeroUsize = nonzero(50_000_000),
        /// Longest time of one call; default `100ms`.
        pub timeout: Duration = Duration::milliseconds(100),
        /// Most instances, which is most calls at a time; more than that fail. Default 64.
        pub instances: NonZeroUsize = nonzero(64),
        /// Most HTTP requests of one call; default 8.
        pub max_requests: NonZeroUsize = nonzero(8),
        /// Largest answer to one; a larger one is an error that the component is told. Default `1 MiB`.
        pub max_response_size: ByteSize = ByteSize(1 << 20),
    }

    /// `plugins[].ejection`
    pub struct PluginEjection {
        /// After so many calls that trapped, needed too much or did what is not permitted; default 5.
        pub faults: NonZeroUsize = nonzero(5),
        /// Within this time; default `60s`.
        pub window: Duration = Duration::seconds(60),
        /// It is left alone so long; default `30s`.
        pub time: Duration = Duration::seconds(30),
    }
}

/// An entry of `permissions.hosts`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PluginHost {
    /// Whether it is asked over TLS.
    pub https: bool,
    /// Its name in lower case, or its address, without brackets.
    pub name: String,
    /// Its port.
    pub port: u16,
}

impl PluginHost {
    /// Takes one apart. The error says what is wrong with it.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let (https, rest) = match text.split_once("://") {
            None => (true, text),
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            Some(_) => return Err("its scheme is neither `https` nor `http`"),
        };
        let (name, port) = if let Some(rest) = rest.strip_prefix('[') {
            let (address, port) = rest.split_once(']').ok_or("a `]` is missing")?;
            let address: Ipv6Addr = address.parse().map_err(|_| "its address is none")?;
            (address.to_string(), port)
        } else {
            let (name, port) = rest.split_at(rest.find(':').unwrap_or(rest.len()));
            (host_name(name)?, port)
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => Some(if https { 443 } else { 80 }),
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok(),
            _ => None,
        };
        let port = port.filter(|port| *port != 0).ok_or("its port is none")?;
        Ok(PluginHost { https, name, port })
    }
}

/// A name of a host (RFC 1123, section 2.1) in lower case, or an address of four numbers. What ends in a number and is no such
/// address is refused: resolvers read it as some other address.
fn host_name(name: &str) -> Result<String, &'static str> {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(is_inner);
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err("a name has letters, digits and hyphens between its dots, and no wildcard");
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    let digits = last.strip_prefix("0x").or(last.strip_prefix("0X"));
    let is_number = last.bytes().all(|b| b.is_ascii_digit())
        || digits.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    if is_number && name.parse::<Ipv4Addr>().is_err() {
        return Err("its address is none");
    }
    Ok(name.to_ascii_lowercase())
}

/// What has to hold of a request for a component to be called, of what is known at the stage of this place in [`HOOK_PLACES`].
#[derive(Clone, PartialEq, Debug)]
pub struct PluginCondition<const AT: usize>(pub Condition);

impl<const AT: usize> Decode for PluginCondition<AT> {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let found = HookCondition::decode_at(node, HOOK_PLACES[AT], false, errors)?;
        Some(PluginCondition(found.0))
    }
}

impl<const AT: usize> Describe for PluginCondition<AT> {
    fn describe(&self, path: &str, doc: &[&str], rows: &mut Vec<OptionRow>) {
        HookCondition::sample().describe(path, doc, rows);
    }
}

impl<const AT: usize> Sample for PluginCondition<AT> {
    fn sample() -> Self {
        PluginCondition(HookCondition::sample().0)
    }
}

impl PluginConditions {
    /// That of a stage by its word, if it has one of its own.
    fn own(&self, stage: &str) -> Option<&Condition> {
        fn of<const AT: usize>(one: &Option<PluginCondition<AT>>) -> Option<&Condition> {
            one.as_ref().map(|one| &one.0)
        }
        match stage {
            "receive" => of(&self.receive),
            "operation" => of(&self.operation),
            "plan" => of(&self.plan),
            "subgraph_request" => of(&self.subgraph_request),
            "subgraph_response" => of(&self.subgraph_response),
            "executed" => of(&self.executed),
            "answer" => of(&self.answer),
            "respond" => of(&self.respond),
            _ => None,
        }
    }
}

impl PluginSection {
    /// Whether a stage has a condition of its own, by the word of the stage.
    pub fn has_own_condition(&self, stage: &str) -> bool {
        self.conditions.own(stage).is_some()
    }
    /// For which requests it is called at a stage, by the word of that; `None`: for all.
    pub fn condition_at(&self, stage: &str) -> Option<&Condition> {
        let own = self.conditions.own(stage);
        own.or_else(|| self.condition.as_ref().map(|one| &one.0))
    }
}

/// The words of `stages` and `bodies`.
pub const PLUGIN_STAGES: [&str; 8] = [
    "receive",
    "operation",
    "plan",
    "subgraph_request",
    "subgraph_response",
    "executed",
    "answer",
    "respond",
];

/// A key that has a component decide something, and the names that it has.
type Deciding<'c> = (&'static [&'static str], Vec<&'c str>);

/// All of them.
fn deciding(config: &Config) -> [Deciding<'_>; 3] {
    let router = &config.authentication.router;
    let policies = &config.authorization.policies;
    let rates = config.traffic_shaping.router.rate_limits.iter();
    let keys = rates
        .flat_map(|rate| &rate.key)
        .filter_map(|one| match one {
            Selector::Component(name) => Some(&**name),
            _ => None,
        });
    [
        (
            &["authentication", "router", "components"],
            router.components.iter().map(|name| &**name).collect(),
        ),
        (
            &["authorization", "policies", "component"],
            policies.component.as_deref().into_iter().collect(),
        ),
        (
            &["traffic_shaping", "router", "rate_limits"],
            keys.collect(),
        ),
    ]
}

/// Checks that who decides something is there.
pub(crate) fn check_deciding(root: &Node, config: &Config, errors: &mut Errors) {
    for (key, names) in deciding(config) {
        let (at, shown) = (span(root, key), key.join("."));
        let is_there = |name: &&str| config.plugins.iter().any(|plugin| plugin.name == *name);
        if !names.iter().all(is_there) {
            let message = format!("`{shown}` names a component that is none of `plugins`");
            errors.invalid(at, message, "name one of them");
        }
        let mut each = names.iter().enumerate();
        let is_list = key.last() == Some(&"components");
        if is_list && each.any(|(at, name)| names[..at].contains(name)) {
            let message = format!("`{shown}` names a component twice");
            errors.invalid(at, message, "");
        }
    }
}

/// Checks that every component can be named, found and told.
pub(crate) fn check(span: Span, config: &Config, errors: &mut Errors) {
    for (at, plugin) in config.plugins.iter().enumerate() {
        let name = &plugin.name;
        if name.is_empty() || plugin.path.is_empty() {
            let message = "a plug-in needs a `name` and a `path`";
            errors.invalid(span, message, "the path is that of a `.wasm` file");
        }
        if config.plugins[..at].iter().any(|other| other.name == *name) {
            errors.invalid(span, format!("two plug-ins are called `{name}`"), "");
        }
        for stage in plugin.stages.iter().chain(&plugin.bodies) {
            if !PLUGIN_STAGES.contains(&stage.as_str()) {
                let help = format!("there are {}", PLUGIN_STAGES.join(", "));
                errors.invalid(span, format!("`{stage}` is no stage of plug-ins"), &help);
            }
        }
        let unlent = plugin.bodies.iter();
        let unlent = unlent.filter(|stage| !plugin.stages.contains(stage));
        for stage in unlent.filter(|_| !plugin.stages.is_empty()) {
            let message = format!("`{stage}` is in `bodies` and not in `stages`");
            errors.invalid(span, message, "");
        }
        let is_off = |stage: &&&str| {
            let is_called = plugin.stages.iter().any(|one| one == **stage);
            !is_called && plugin.conditions.own(stage).is_some()
        };
        let mut uncalled = PLUGIN_STAGES.iter().filter(|_| !plugin.stages.is_empty());
        if let Some(stage) = uncalled.find(is_off) {
            let message = format!("`{stage}` is in `conditions` and not in `stages`");
            errors.invalid(span, message, "");
        }
        let permissions = &plugin.permissions;
        let headers = permissions.read_headers.iter();
        for header in headers.chain(&permissions.write_headers) {
            // RFC 9110, section 5.6.2.
            let is_name = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            if header.is_empty() || !header.bytes().all(is_name) {
                errors.invalid(span, format!("`{header}` is no name of a header"), "");
            }
        }
        for host in &permissions.hosts {
            if let Err(why) = PluginHost::read(host) {
                errors.invalid(
                    span,
                    format!("`{host}` is no host that a plug-in may ask: {why}"),
                    "such as `api.example.com`, `api.example.com:8443` or `http://localhost:8080`",
                );
            }
        }
        let digits = plugin.sha256.as_ref();
        let is_digest =
            |text: &&String| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if digits.is_some_and(|text| !is_digest(&text)) {
            let message = "a SHA-256 has 64 hexadecimal digits";
            errors.invalid(span, message, "as `sha256sum` prints it");
        }
        let limits = (&plugin.limits, &plugin.ejection);
        let times = [limits.0.timeout, limits.1.window, limits.1.time];
        if times.iter().any(|time| time.0.is_zero()) {
            errors.invalid(span, "a time of a plug-in is zero", "such as `100ms`");
        }
    }
}

#[cfg(test)]
mod tests {
    use ogive_base::SourceId;

    fn refused(text: &str) -> String {
        let text = format!("plugins: [{text}]\n");
        let loaded = crate::load(SourceId(0), &text, &|_| None);
        loaded.map_or_else(|errors| errors[0].message.clone(), |_| String::new())
    }

    #[test]
    fn hosts_are_exact_names_and_say_where_there_is_no_tls() {
        let read = |text: &str| {
            super::PluginHost::read(text)
                .map(|host| format!("{} {} {}", host.https, host.name, host.port))
        };
        for (text, expected) in [
            ("API.example.com", "true api.example.com 443"),
            ("api.example.com:8443", "true api.example.com 8443"),
            ("https://api.example.com", "true api.example.com 443"),
            ("http://policies", "false policies 80"),
            ("http://localhost:8181", "false localhost 8181"),
            ("10.0.0.1:80", "true 10.0.0.1 80"),
            ("[::0:1]:9000", "true ::1 9000"),
        ] {
            assert_eq!(read(text), Ok(expected.to_owned()), "{text}");
        }
        for text in [
            "",
            "*",
            "*.example.com",
            "https://",
            "ftp://a",
            "HTTP://a",
            "a/",
            "a/path",
            "a?b",
            "u@a",
            "u:p@a",
            "a b",
            "a.",
            ".a",
            "a..b",
            "a:",
            "a:0",
            "a:+80",
            "a:80:81",
            "a:65536",
            "::1",
            "[::1",
            "[::1]x",
            "[a]",
            "2130706433",
            "127.1",
            "0x7f.0.0.1",
            "127.0.0.0x1",
            "010.0.0.1",
            "\u{e4}.test",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_no_plug_in_can_be_is_refused() {
        let good = "name: a, path: a.wasm";
        assert_eq!(refused(&format!("{{ {good} }}")), "");
        for (bad, why) in [
            (
                "{ name: a }".to_owned(),
                "a plug-in needs a `name` and a `path`",
            ),
            (
                "{ path: a.wasm }".to_owned(),
                "a plug-in needs a `name` and a `path`",
            ),
            (
                format!("{{ {good} }}, {{ {good} }}"),
                "two plug-ins are called `a`",
            ),
            (
                format!("{{ {good}, stages: [router] }}"),
                "`router` is no stage of plug-ins",
            ),
            (
                format!("{{ {good}, stages: [respond], bodies: [receive] }}"),
                "`receive` is in `bodies` and not in `stages`",
            ),
            (
                format!(
                    "{{ {good}, stages: [respond], conditions: {{ plan: {{ exists: {{ jwt_claim: a }} }} }} }}"
                ),
                "`plan` is in `conditions` and not in `stages`",
            ),
            (
                format!("{{ {good}, condition: {{ exists: {{ operation_name: true }} }} }}"),
                "`operation_name` says nothing in `coprocessor.router.request` and `receive` of components",
            ),
            (
                format!("{{ {good}, condition: {{ exists: {{ response_header: x-a }} }} }}"),
                "`response_header` says nothing in `coprocessor.router.request` and `receive` of components",
            ),
            (
                format!(
                    "{{ {good}, conditions: {{ plan: {{ exists: {{ response_status: code }} }} }} }}"
                ),
                "`response_status` says nothing in `coprocessor.execution.request` and `plan` of components",
            ),
            (
                format!("{{ {good}, conditions: {{ router: {{ exists: {{ jwt_claim: a }} }} }} }}"),
                "unknown key `router`",
            ),
            (
                format!("{{ {good}, permissions: {{ read_headers: ['a b'] }} }}"),
                "`a b` is no name of a header",
            ),
            (
                format!("{{ {good}, sha256: abc }}"),
                "a SHA-256 has 64 hexadecimal digits",
            ),
            (
                format!("{{ {good}, permissions: {{ hosts: ['*.a.test'] }} }}"),
                "`*.a.test` is no host that a plug-in may ask: a name has letters, digits and hyphens between its dots, and no \
                 wildcard",
            ),
            (
                format!("{{ {good}, limits: {{ timeout: 0s }} }}"),
                "a time of a plug-in is zero",
            ),
        ] {
            assert_eq!(refused(&bad), why, "{bad}");
        }
    }

    #[test]
    fn the_condition_of_a_stage_counts_in_place_of_the_general_one() {
        let text = "plugins: [{ name: a, path: a.wasm, condition: { exists: { request_header: x-a } }, \
                    conditions: { subgraph_request: { exists: { subgraph_name: true } } } }]\n";
        let config = crate::load(SourceId(0), text, &|_| None).unwrap();
        let plugin = &config.plugins[0];
        for stage in crate::PLUGIN_STAGES {
            let found = plugin.condition_at(stage).unwrap();
            let expected = match stage {
                "subgraph_request" => ogive_selectors::Selector::SubgraphName,
                _ => ogive_selectors::Selector::RequestHeader("x-a".into()),
            };
            assert_eq!(
                *found,
                ogive_selectors::Condition::Exists(expected),
                "{stage}"
            );
        }
    }

    #[test]
    fn who_decides_is_a_component_that_there_is() {
        let load = |text: &str| {
            let text = format!("plugins: [{{ name: a, path: a.wasm }}]\n{text}\n");
            let loaded = crate::load(SourceId(0), &text, &|_| None);
            loaded.map_or_else(|errors| errors[0].message.clone(), |_| String::new())
        };
        let authenticates = "authentication: { router: { components: [NAME] } }\n\
                             authorization: { require_authentication: true }";
        let policies = "authorization: { directives: enforce, claims: { header: x, trusted: [10.1.2.3] }, \
                        policies: { component: NAME } }";
        let rate = "traffic_shaping: { router: { rate_limits: [{ name: r, key: [{ component: NAME }] }] } }";
        for text in [authenticates, policies, rate] {
            assert_eq!(load(&text.replace("NAME", "a")), "", "{text}");
            let found = load(&text.replace("NAME", "b"));
            assert!(
                found.ends_with("names a component that is none of `plugins`"),
                "{found}"
            );
        }
        let twice = load(&authenticates.replace("NAME", "a, a"));
        assert!(twice.ends_with("names a component twice"), "{twice}");
        let both = policies.replace("NAME", "a, cedar: { policies: [c] }");
        assert!(load(&both).contains("by no two of them"));
        let of_subgraph = rate.replace("NAME", "a").replace("router", "all");
        assert!(load(&of_subgraph).starts_with("`component` says nothing in rates of subgraphs"));
    }
}
