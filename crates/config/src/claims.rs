//! What is to be told of claims although nobody can be known by any, and what requests to subgraphs say of callers beside a
//! signature that does not hold it.

use ogive_selectors::Selector;
use ogive_yaml::Node;
use ogive_yaml::tree::span;

use crate::{
    Attribute, AttributeSource, Config, HeaderRule, HeaderSection, LabelSelector,
    RequestExtensions, ResponseHeaderRule, decode::Errors,
};

const HELP: &str = "say how callers are known: `authentication.router`, or `authorization.claims`";

impl Config {
    /// Whether anybody can be known by claims: from a credential, from a proxy, or because a coprocessor, a script or a
    /// component says so.
    pub fn may_know_claims(&self) -> bool {
        self.knows_callers()
            || self.authorization.claims.header.is_some()
            || self.coprocessor.router.request.0.is_on()
            || self.rhai.scripts.is_some()
            || self.components_write("apollo::authentication::jwt_claims")
    }

    /// Whether a component may write an entry of the context.
    fn components_write(&self, entry: &str) -> bool {
        let mut plugins = self.plugins.iter();
        plugins.any(|plugin| {
            plugin
                .permissions
                .write_context
                .iter()
                .any(|one| one == entry)
        })
    }

    /// Whether a coprocessor, a script or a component may write into the context.
    fn writes_context(&self) -> bool {
        let mut plugins = self.plugins.iter();
        !self.coprocessor.stages().is_empty()
            || self.rhai.scripts.is_some()
            || plugins.any(|plugin| !plugin.permissions.write_context.is_empty())
    }

    /// Attributes of log lines, spans and metrics, with the section of `telemetry` that they are in.
    fn shown_attributes(&self) -> impl Iterator<Item = (&'static str, &Attribute)> {
        let telemetry = &self.telemetry;
        let (spans, instruments) = (
            &telemetry.instrumentation.spans,
            &telemetry.instrumentation.instruments,
        );
        let all = [
            ("access_log", &telemetry.access_log.attributes.0),
            ("instrumentation", &spans.router.attributes.0),
            ("instrumentation", &spans.supergraph.attributes.0),
            ("instrumentation", &spans.subgraph.attributes.0),
            ("instrumentation", &instruments.router.0.0),
            ("instrumentation", &instruments.supergraph.0.0),
            ("instrumentation", &instruments.subgraph.0.0),
        ];
        let all = all.into_iter();
        all.flat_map(|(section, named)| named.values().map(move |one| (section, one)))
    }

    /// Extensions of requests to subgraphs: of all that have none of their own, and of each that is named anywhere.
    fn extended_subgraphs(&self) -> impl Iterator<Item = (&str, RequestExtensions)> {
        let named = self.traffic_shaping.subgraphs.keys();
        let proved = self.authentication.subgraph.subgraphs.keys();
        let mut names: Vec<&str> = named.chain(proved).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        // No subgraph is called so: what holds for all.
        let all = std::iter::once("").chain(names);
        all.map(|name| (name, self.traffic(name).request_extensions))
    }

    /// Claims that a header rule looks at in vain, and members of extensions that a signature does not hold.
    pub(crate) fn note_what_subgraphs_are_told(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let sections = self.headers.subgraphs.values();
        let mut rules = std::iter::once(&self.headers.all).chain(sections);
        let of_claim = |section: &HeaderSection| {
            let request = section.request.iter().flat_map(HeaderRule::selectors);
            let response = section.response.iter();
            let response = response.flat_map(ResponseHeaderRule::selectors);
            request.chain(response).any(is_claim)
        };
        if !self.may_know_claims() && rules.any(of_claim) {
            notes.push(format!(
                "a rule of `headers` looks at a claim, and nobody is known by any, so there never is one: {HELP}"
            ));
        }
        let is_exposed = |(name, members): &(&str, RequestExtensions)| {
            let proof = self.subgraph_authentication(name);
            let varies = |member: &Attribute| matches!(member.from, AttributeSource::Selector(_));
            proof.hmac.is_some()
                && proof.message_signature.is_none()
                && members.0.values().any(varies)
        };
        if self.extended_subgraphs().any(|one| is_exposed(&one)) {
            notes.push(
                "`request_extensions` are not signed where `hmac` is all that signs: it holds query and variables; use \
                 `message_signature`, which holds the whole body, or do not rely on them"
                    .to_owned(),
            );
        }
        notes
    }
}

fn is_claim(selector: &Selector) -> bool {
    matches!(selector, Selector::JwtClaim(_))
}

/// Reports what can never say anything, and what would be written twice.
pub(crate) fn check(root: &Node, config: &Config, errors: &mut Errors) {
    for (subgraph, members) in config.extended_subgraphs() {
        let hmac = config.subgraph_authentication(subgraph).hmac.as_ref();
        if let Some(hmac) = hmac.filter(|hmac| members.0.contains_key(&hmac.extension_name)) {
            let message = format!(
                "`{}` is where the signature goes, and cannot be a member of `request_extensions`, too",
                hmac.extension_name
            );
            let at = span(root, &["traffic_shaping"]);
            errors.invalid(at, message, "name another member");
        }
    }
    let looks_at = |attribute: &Attribute, is: fn(&Selector) -> bool| match &attribute.from {
        AttributeSource::Selector(selector) => is(selector),
        AttributeSource::Static(_) => false,
    };
    let of_context = |selector: &Selector| matches!(selector, Selector::RequestContext(_));
    let mut shown = config.shown_attributes();
    let in_vain = shown.find(|(_, one)| !config.writes_context() && looks_at(one, of_context));
    if let Some((section, _)) = in_vain {
        let message = "an attribute looks at the context, and nobody writes into it";
        let help = "a coprocessor, a script or a component does: `coprocessor`, `rhai.scripts`, or `plugins` with `write_context`";
        errors.invalid(span(root, &["telemetry", section]), message, help);
    }
    if config.may_know_claims() {
        return;
    }
    let mut shown = config.shown_attributes();
    if let Some((section, _)) = shown.find(|(_, one)| looks_at(one, is_claim)) {
        let message = "an attribute looks at claims, and nobody is known by any";
        errors.invalid(span(root, &["telemetry", section]), message, HELP);
    }
    let of_claim = |attribute: &Attribute| looks_at(attribute, is_claim);
    if config
        .extended_subgraphs()
        .any(|(_, members)| members.0.values().any(of_claim))
    {
        let message = "`request_extensions` look at claims, and nobody is known by any";
        errors.invalid(span(root, &["traffic_shaping"]), message, HELP);
    }
    let urls = config.override_subgraph_urls.values().flatten();
    let mut conditions = urls.filter_map(|rule| rule.when.as_ref());
    if conditions.any(|when| when.0.selectors().into_iter().any(is_claim)) {
        let message = "`override_subgraph_urls` look at claims, and nobody is known by any";
        errors.invalid(span(root, &["override_subgraph_urls"]), message, HELP);
    }
    let mut redacted = config.authorization.redact.iter();
    if redacted.any(|rule| rule.unless.is_some()) {
        let message = "`redact` looks at claims, and nobody is known by any";
        let at = span(root, &["authorization", "redact"]);
        errors.invalid(at, message, HELP);
    }
    let sticky = config.override_labels.sticky_by.as_ref();
    if matches!(sticky, Some(LabelSelector(Selector::JwtClaim(_)))) {
        let message = "`sticky_by` looks at a claim, and nobody is known by any";
        let at = span(root, &["override_labels", "sticky_by"]);
        errors.invalid(at, message, HELP);
    }
}

#[cfg(test)]
mod tests {
    use ogive_base::SourceId;

    use crate::Config;

    fn load(text: &str) -> Result<Config, String> {
        crate::load(SourceId(0), text, &|_| None).map_err(|errors| errors[0].message.clone())
    }

    const KEYS: &str = "authentication: { router: { api_keys: { file: k } } }\n";

    #[test]
    fn claims_that_nobody_has_are_refused_or_named() {
        let extended = "traffic_shaping: { SECTION: { request_extensions: { role: { jwt_claim: role, default: admin } } } }";
        for text in [
            "override_labels: { sticky_by: { jwt_claim: sub } }".to_owned(),
            extended.replace("SECTION", "all"),
            extended
                .replace("SECTION", "subgraphs: { a")
                .replace("} } } }", "} } } } }"),
        ] {
            let error = load(&text).unwrap_err();
            assert!(error.contains("nobody is known"), "{text}: {error}");
            load(&format!("{KEYS}{text}")).unwrap();
            let told = "coprocessor: { url: 'http://127.0.0.1:1', router: { request: { context: true } } }\n";
            load(&format!("{told}{text}")).unwrap();
        }
        let header =
            "headers: { all: { request: [ { insert: { name: x, from: { jwt_claim: sub } } } ] } }";
        let notes = |text: &str| load(text).unwrap().notes().concat();
        assert!(notes(header).contains("nobody is known"));
        assert!(!notes(&format!("{KEYS}{header}")).contains("nobody is known"));
    }

    #[test]
    fn a_context_that_nobody_writes_into_is_not_looked_at() {
        let log = "telemetry: { access_log: { attributes: { a: { request_context: b } } } }\n";
        assert!(load(log).unwrap_err().contains("nobody writes into it"));
        load(&format!("rhai: {{ scripts: s }}\n{log}")).unwrap();
        let writes = "plugins: [{ name: a, path: a.wasm, permissions: { write_context: [b] } }]";
        load(&format!("{writes}\n{log}")).unwrap();
    }

    #[test]
    fn extensions_beside_hmac_are_not_what_it_signs() {
        let with = |name: &str, member: &str, signed: &str| {
            format!(
                "traffic_shaping: {{ all: {{ request_extensions: {{ {name}: {member} }} }} }}\n\
                 authentication: {{ subgraph: {{ subgraphs: {{ a: {{ hmac: {{ secret: a-secret-of-16-b, extension_name: proof }}{signed} }} }} }} }}\n"
            )
        };
        let kind = "{ operation_kind: true }";
        assert!(
            load(&with("proof", kind, ""))
                .unwrap_err()
                .contains("signature")
        );
        let exposed = |text: &str| load(text).unwrap().notes().concat().contains("not signed");
        assert!(exposed(&with("kind", kind, "")));
        let signed = ", message_signature: { key: k }";
        assert!(!exposed(&with("kind", kind, signed)));
        assert!(!exposed(&with("from", "{ static: ogive }", "")));
    }
}
