//! The options of `authentication.subgraph`: how the gateway proves to subgraphs who it is.

use std::{collections::BTreeMap, fmt};

use ogive_yaml::{Node, Value};

use crate::{
    Config, Duration, Url,
    decode::{Decode, Errors, section},
    scalars::is_loopback,
    words::words,
};

/// Shortest secret of `hmac`, as of message signatures.
const HMAC_SECRET_BYTES_MIN: usize = 16;

/// A secret: `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SecretText(pub String);

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl Decode for SecretText {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let text = errors.scalar(node, "a secret, such as `${env.NAME}`")?;
        Some(SecretText(text.to_owned()))
    }
}

words! {
    /// How a client of an authorization server authenticates.
    pub enum ClientAuthenticationWord {
        /// In the header.
        Basic = "basic",
        /// In the body.
        Post = "post",
    }

    /// Algorithms of RFC 9421.
    pub enum SignatureAlgorithm {
        /// EdDSA.
        Ed25519 = "ed25519",
        /// ECDSA with P-256.
        EcdsaP256 = "ecdsa-p256-sha256",
        /// ECDSA with P-384.
        EcdsaP384 = "ecdsa-p384-sha384",
        /// RSA with PSS.
        RsaPss = "rsa-pss-sha512",
        /// RSA with PKCS #1.
        RsaPkcs1 = "rsa-v1_5-sha256",
        /// HMAC.
        Hmac = "hmac-sha256",
    }

    /// Digests of RFC 9530.
    pub enum DigestWord {
        /// SHA-256.
        Sha256 = "sha-256",
        /// SHA-512.
        Sha512 = "sha-512",
    }
}

section! {
    /// `authentication`
    pub struct AuthenticationOptions {
        /// How the gateway learns who a client is.
        pub router: crate::RouterAuthentication = crate::RouterAuthentication::default(),
        /// How the gateway proves to subgraphs who it is.
        pub subgraph: SubgraphsAuthentication = SubgraphsAuthentication::default(),
    }

    /// `authentication.subgraph`
    pub struct SubgraphsAuthentication {
        /// Every subgraph that is not named in `subgraphs`.
        pub all: SubgraphAuthentication = SubgraphAuthentication::default(),
        /// By subgraph name, instead of `all`: what is not set here is not done, so `{}` proves nothing to the subgraph.
        pub subgraphs: BTreeMap<String, SubgraphAuthentication> = BTreeMap::new(),
    }

    /// `authentication.subgraph.all` and `authentication.subgraph.subgraphs.<name>`
    pub struct SubgraphAuthentication {
        /// AWS Signature Version 4.
        pub aws_sig_v4: Option<AwsSigV4Options> = None,
        /// HMAC of query and variables in an extension of the request, as Hive Gateway and GraphQL Mesh sign.
        pub hmac: Option<HmacOptions> = None,
        /// HTTP message signatures (RFC 9421).
        pub message_signature: Option<MessageSignatureOptions> = None,
        /// A bearer token by client credentials (RFC 6749, section 4.4). Not beside `aws_sig_v4`, which needs the same header.
        pub bearer: Option<BearerOptions> = None,
    }

    /// `aws_sig_v4`
    pub struct AwsSigV4Options {
        /// Credentials found where AWS puts them: in the environment, by web identity (Kubernetes), at the container's
        /// endpoint (ECS, EKS), at the metadata service of an EC2 instance.
        pub default_chain: Option<AwsChainOptions> = None,
        /// Credentials written here.
        pub hardcoded: Option<AwsHardcodedOptions> = None,
    }

    /// `aws_sig_v4.default_chain`
    pub struct AwsChainOptions {
        /// Region of the service, such as `eu-central-1`.
        pub region: String = String::new(),
        /// Service that is asked, such as `execute-api`, `lambda` or `vpc-lattice-svcs`.
        pub service_name: String = String::new(),
        /// Profile of the shared credentials file to take keys from, instead of looking elsewhere.
        pub profile_name: Option<String> = None,
        /// Role to take with these credentials.
        pub assume_role: Option<AwsRoleOptions> = None,
    }

    /// `aws_sig_v4.hardcoded`
    pub struct AwsHardcodedOptions {
        /// Region of the service, such as `eu-central-1`.
        pub region: String = String::new(),
        /// Service that is asked, such as `execute-api`, `lambda` or `vpc-lattice-svcs`.
        pub service_name: String = String::new(),
        /// Id of the key.
        pub access_key_id: SecretText = SecretText::default(),
        /// The key.
        pub secret_access_key: SecretText = SecretText::default(),
        /// Role to take with it.
        pub assume_role: Option<AwsRoleOptions> = None,
    }

    /// `aws_sig_v4.default_chain.assume_role` and `aws_sig_v4.hardcoded.assume_role`
    pub struct AwsRoleOptions {
        /// ARN of the role.
        pub role_arn: String = String::new(),
        /// What the session is called.
        pub session_name: String = String::new(),
        /// What the owner of the role asks for besides.
        pub external_id: Option<String> = None,
    }

    /// `hmac`
    pub struct HmacOptions {
        /// The secret that the subgraph knows, too, at least 16 bytes.
        pub secret: SecretText = SecretText::default(),
        /// Name of the extension; default `hmac-signature`.
        pub extension_name: String = "hmac-signature".into(),
    }

    /// `message_signature`
    pub struct MessageSignatureOptions {
        /// Algorithm; default `ed25519`. RSA and P-384 take many times as long as the others, and are done beside the worker.
        pub algorithm: SignatureAlgorithm = SignatureAlgorithm::Ed25519,
        /// Private key: a PEM file (PKCS #8), or its text. With `hmac-sha256` the secret, at least 16 bytes, as it is or
        /// as `base64:...`.
        pub key: SecretText = SecretText::default(),
        /// What the subgraph knows the key by, `keyid`.
        pub key_id: Option<String> = None,
        /// What is signed, in order: `@method`, `@target-uri`, `@authority`, `@scheme`, `@request-target`, `@path`, `@query`, and
        /// names of headers that every request has. `content-digest` stands for the body and is made when it is listed.
        /// Default `@method`, `@authority`, `@path`, `content-digest`, `content-type`.
        pub components: Vec<String> = ["@method", "@authority", "@path", "content-digest", "content-type"].map(String::from).to_vec(),
        /// Name of the signature; default `sig1`.
        pub label: String = "sig1".into(),
        /// How long a signature holds, `expires`; default: it does not say, and the subgraph decides by `created`.
        pub expires: Option<Duration> = None,
        /// Whether the algorithm is named, `alg`; default yes.
        pub include_algorithm: bool = true,
        /// What the signature is for, `tag`.
        pub tag: Option<String> = None,
        /// Digest of bodies (RFC 9530); default `sha-256`.
        pub digest: DigestWord = DigestWord::Sha256,
    }

    /// `bearer`
    pub struct BearerOptions {
        /// Token endpoint of the authorization server.
        pub token_endpoint: Option<Url> = None,
        /// Who the gateway is there.
        pub client_id: String = String::new(),
        /// The secret that belongs to it.
        pub client_secret: SecretText = SecretText::default(),
        /// How both are sent: `basic`, in the header `authorization` (the default), or `post`, in the body.
        pub client_authentication: ClientAuthenticationWord = ClientAuthenticationWord::Basic,
        /// Scopes to ask for.
        pub scopes: Vec<String> = Vec::new(),
        /// `audience` to ask for, where the authorization server knows several.
        pub audience: Option<String> = None,
        /// How long before its end a token is renewed, half of its life at the most; default `60s`.
        pub renew_before: Duration = Duration::seconds(60),
        /// How long the token endpoint may take to answer; default `10s`.
        pub timeout: Duration = Duration::seconds(10),
        /// Whether `token_endpoint` may be an `http://` URL of another machine; whoever is on the way can read the secret.
        /// Default no.
        pub allow_plain_http: bool = false,
    }
}

impl SubgraphAuthentication {
    /// Whether nothing is proved.
    pub fn is_empty(&self) -> bool {
        *self == SubgraphAuthentication::default()
    }
}

impl Config {
    /// How the gateway proves to one subgraph who it is.
    pub fn subgraph_authentication(&self, subgraph: &str) -> &SubgraphAuthentication {
        let options = &self.authentication.subgraph;
        options.subgraphs.get(subgraph).unwrap_or(&options.all)
    }
}

/// Reports what is missing, and what cannot be beside each other.
pub(crate) fn check(root: &Node, config: &Config, errors: &mut Errors) {
    let options = &config.authentication.subgraph;
    let base = ["authentication", "subgraph"];
    let all = (vec!["all"], &options.all);
    let own = options.subgraphs.iter();
    let own = own.map(|(name, own)| (vec!["subgraphs", name.as_str()], own));
    for (path, subgraph) in std::iter::once(all).chain(own) {
        let mut at = base.into_iter().chain(path);
        let node = at.try_fold(root, below);
        // Nothing is wrong with what is not there.
        if let Some(node) = node {
            check_one(node, subgraph, errors);
        }
    }
}

fn check_one(node: &Node, options: &SubgraphAuthentication, errors: &mut Errors) {
    if let (Some(aws), Some(node)) = (&options.aws_sig_v4, below(node, "aws_sig_v4")) {
        check_aws(node, aws, errors);
    }
    if let (Some(hmac), Some(node)) = (&options.hmac, below(node, "hmac")) {
        let keys = [
            ("secret", &*hmac.secret.0),
            ("extension_name", &hmac.extension_name),
        ];
        missing(node, &keys, errors);
        let length = hmac.secret.0.len();
        if (1..HMAC_SECRET_BYTES_MIN).contains(&length) {
            let at = below(node, "secret").unwrap_or(node);
            errors.invalid(
                at.span,
                format!("a secret of less than {HMAC_SECRET_BYTES_MIN} bytes can be guessed"),
                "make one with `openssl rand -base64 32`",
            );
        }
    }
    if let (Some(message), Some(node)) =
        (&options.message_signature, below(node, "message_signature"))
    {
        missing(node, &[("key", &message.key.0)], errors);
        if let Some(expires) = message.expires
            && (expires.0.is_zero() || expires.0.subsec_nanos() != 0)
        {
            let at = below(node, "expires").unwrap_or(node);
            errors.invalid(
                at.span,
                "a signature says in whole seconds when it ends",
                "write a time such as `60s`",
            );
        }
    }
    let Some((bearer, node)) = options.bearer.as_ref().zip(below(node, "bearer")) else {
        return;
    };
    let endpoint = bearer.token_endpoint.as_ref().map_or("", |url| &*url.0);
    let keys = [
        ("token_endpoint", endpoint),
        ("client_id", &*bearer.client_id),
        ("client_secret", &*bearer.client_secret.0),
    ];
    missing(node, &keys, errors);
    if endpoint.starts_with("http://") && !is_loopback(endpoint) && !bearer.allow_plain_http {
        let at = below(node, "token_endpoint").unwrap_or(node);
        errors.invalid(
            at.span,
            "the secret would be sent to another machine in the clear",
            "write an `https://` URL, or set `allow_plain_http: true` if nobody is on the way",
        );
    }
    if options.aws_sig_v4.is_some() {
        errors.invalid(
            node.span,
            "`bearer` and `aws_sig_v4` need the same header, `authorization`",
            "keep one of them",
        );
    }
}

fn check_aws(node: &Node, aws: &AwsSigV4Options, errors: &mut Errors) {
    let found = (aws.default_chain.as_ref(), aws.hardcoded.as_ref());
    let (keys, role, name) = match found {
        (Some(chain), None) => (
            vec![
                ("region", &*chain.region),
                ("service_name", &chain.service_name),
            ],
            &chain.assume_role,
            "default_chain",
        ),
        (None, Some(given)) => (
            vec![
                ("region", &*given.region),
                ("service_name", &given.service_name),
                ("access_key_id", &given.access_key_id.0),
                ("secret_access_key", &given.secret_access_key.0),
            ],
            &given.assume_role,
            "hardcoded",
        ),
        _ => {
            let help = "write exactly one of `default_chain` and `hardcoded`";
            return errors.invalid(
                node.span,
                "where the credentials are must be said once",
                help,
            );
        }
    };
    let node = below(node, name).unwrap_or(node);
    missing(node, &keys, errors);
    if let (Some(role), Some(node)) = (role, below(node, "assume_role")) {
        let keys = [
            ("role_arn", &*role.role_arn),
            ("session_name", &role.session_name),
        ];
        missing(node, &keys, errors);
    }
}

fn missing(node: &Node, keys: &[(&str, &str)], errors: &mut Errors) {
    for (key, value) in keys {
        if value.is_empty() {
            let at = below(node, key).unwrap_or(node);
            errors.invalid(at.span, format!("`{key}` is missing"), "");
        }
    }
}

fn below<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    match &node.value {
        Value::Map(entries) => {
            let mut entries = entries.iter();
            entries
                .find(|(name, _)| name.text == key)
                .map(|(_, node)| node)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config, String> {
        let env = |name: &str| (name == "SECRET").then(|| "s3cret-of-16-bytes".to_owned());
        let loaded = crate::load(ogive_base::SourceId(0), text, &env);
        loaded.map_err(|errors| errors[0].message.clone())
    }

    fn subgraph(text: &str) -> String {
        format!("authentication: {{ subgraph: {{ subgraphs: {{ a: {{ {text} }} }} }} }}")
    }

    #[test]
    fn a_subgraph_has_its_own_proof_or_that_of_all() {
        let config = load(
            "authentication:\n  subgraph:\n    all: { hmac: { secret: '${env.SECRET}' } }\n    subgraphs:\n      a: {}\n      \
             b: { bearer: { token_endpoint: 'https://idp/token', client_id: me, client_secret: '${env.SECRET}' } }\n",
        )
        .unwrap();
        assert!(config.subgraph_authentication("a").is_empty());
        let b = config.subgraph_authentication("b");
        assert!(b.hmac.is_none() && b.bearer.is_some());
        assert_eq!(
            config
                .subgraph_authentication("c")
                .hmac
                .as_ref()
                .unwrap()
                .secret
                .0,
            "s3cret-of-16-bytes"
        );
        let shown = format!("{config:?}");
        assert!(!shown.contains("s3cret") && shown.contains("[secret]"));
    }

    #[test]
    fn what_is_missing_or_contradicts_itself_is_named() {
        let chain = "aws_sig_v4: { default_chain: { region: r, service_name: s } }";
        let bearer =
            "bearer: { token_endpoint: 'https://idp/token', client_id: me, client_secret: s }";
        assert_eq!(load(&subgraph(chain)).err(), None);
        assert_eq!(load(&subgraph(bearer)).err(), None);
        for (text, message) in [
            (
                "aws_sig_v4: {}",
                "where the credentials are must be said once",
            ),
            (
                "aws_sig_v4: { default_chain: { region: r } }",
                "`service_name` is missing",
            ),
            (
                "aws_sig_v4: { hardcoded: { region: r, service_name: s, access_key_id: i } }",
                "`secret_access_key` is missing",
            ),
            (
                "aws_sig_v4: { default_chain: { region: r, service_name: s, assume_role: { role_arn: x } } }",
                "`session_name` is missing",
            ),
            ("hmac: {}", "`secret` is missing"),
            ("hmac: { secret: '' }", "`secret` is missing"),
            (
                "hmac: { secret: a }",
                "a secret of less than 16 bytes can be guessed",
            ),
            (
                "hmac: { secret: 123456789012345 }",
                "a secret of less than 16 bytes can be guessed",
            ),
            ("message_signature: {}", "`key` is missing"),
            (
                "message_signature: { key: k, expires: 500ms }",
                "a signature says in whole seconds when it ends",
            ),
            (
                "bearer: { client_id: a, client_secret: b }",
                "`token_endpoint` is missing",
            ),
            (
                "bearer: { token_endpoint: 'http://idp/token', client_id: a, client_secret: b }",
                "the secret would be sent to another machine in the clear",
            ),
            (
                &format!("{chain}, {bearer}"),
                "`bearer` and `aws_sig_v4` need the same header, `authorization`",
            ),
        ] {
            assert_eq!(
                load(&subgraph(text)).err().as_deref(),
                Some(message),
                "{text}"
            );
        }
        let near = "bearer: { token_endpoint: 'http://127.0.0.1:1/token', client_id: a, client_secret: b }";
        assert_eq!(load(&subgraph(near)).err(), None);
    }
}
