//! How the gateway proves to subgraphs who it is, as the configuration asks for it.

use std::sync::Arc;

use http::HeaderName;
use ogive_config::{
    AwsRoleOptions, AwsSigV4Options, BearerOptions, ClientAuthenticationWord, Config, DigestWord,
    MessageSignatureOptions, SecretText, SignatureAlgorithm, SubgraphAuthentication,
};
use ogive_signing::{
    Algorithm, AssumeRole, Aws, AwsOptions, Bearer, ClientAuthentication, Component,
    CredentialSource, Hmac, MessageSignature, Proof, Secret, SigningKey,
    message::Digest,
    sigv4::{Credentials, Target},
};
use ogive_transport::{OwnHeader, Signer};

/// The signer of one subgraph; `None` if nothing is proved to it. One that cannot be made lets no request pass.
pub(crate) fn signer(config: &Config, name: &str) -> Option<Arc<dyn Signer>> {
    let options = config.subgraph_authentication(name);
    if options.is_empty() {
        return None;
    }
    let proof = proof(options).unwrap_or_else(|why| {
        tracing::error!(
            subgraph = name,
            "requests to the subgraph cannot be signed, and are not sent: {why}"
        );
        Proof {
            unusable: Some(why),
            ..Proof::default()
        }
    });
    Some(Arc::new(proof))
}

/// Headers that are the gateway's towards a subgraph: what a client sent by these names goes no further, so that it is
/// neither signed nor taken for proof.
pub(crate) fn own_headers(config: &Config, name: &str) -> impl Iterator<Item = OwnHeader> {
    let options = config.subgraph_authentication(name);
    let names: [(bool, &[&'static str]); 3] = [
        (options.aws_sig_v4.is_some(), &AWS_HEADERS),
        (options.message_signature.is_some(), &MESSAGE_HEADERS),
        (options.bearer.is_some(), &["authorization"]),
    ];
    let names = names
        .into_iter()
        .filter_map(|(used, names)| used.then_some(names));
    let names = names.flatten();
    let names = names.map(|name| OwnHeader::Named(HeaderName::from_static(name)));
    // AWS takes instructions from such headers, and all of them are signed.
    let of_aws = options.aws_sig_v4.is_some();
    names.chain(of_aws.then_some(OwnHeader::Prefixed("x-amz-")))
}

const AWS_HEADERS: [&str; 1] = ["authorization"];
const MESSAGE_HEADERS: [&str; 3] = ["content-digest", "signature", "signature-input"];

/// What is asked for, or why it cannot be had.
pub(crate) fn proof(options: &SubgraphAuthentication) -> Result<Proof, String> {
    let message = options.message_signature.as_ref();
    Ok(Proof {
        hmac: options.hmac.as_ref().map(|hmac| {
            let secret = secret(&hmac.secret);
            Hmac::new(&secret, &*hmac.extension_name)
        }),
        aws: options.aws_sig_v4.as_ref().and_then(aws),
        bearer: options.bearer.as_ref().map(bearer),
        message: message.map(message_signature).transpose()?,
        unusable: None,
    })
}

fn secret(text: &SecretText) -> Secret {
    Secret::new(&*text.0)
}

fn aws(options: &AwsSigV4Options) -> Option<Aws> {
    let role = |role: &AwsRoleOptions| AssumeRole {
        role_arn: role.role_arn.clone(),
        session_name: role.session_name.clone(),
        external_id: role.external_id.clone(),
    };
    let target = |region: &str, service: &str| Target {
        region: region.to_owned(),
        service: service.to_owned(),
    };
    // There is one of them: the configuration was checked when it was read.
    let options = match (&options.default_chain, &options.hardcoded) {
        (Some(chain), _) => AwsOptions {
            target: target(&chain.region, &chain.service_name),
            source: CredentialSource::Found {
                profile: chain.profile_name.clone(),
            },
            assume_role: chain.assume_role.as_ref().map(role),
        },
        (None, Some(given)) => AwsOptions {
            target: target(&given.region, &given.service_name),
            source: CredentialSource::Given(Credentials {
                access_key_id: given.access_key_id.0.clone(),
                secret_access_key: secret(&given.secret_access_key),
                session_token: None,
            }),
            assume_role: given.assume_role.as_ref().map(role),
        },
        (None, None) => return None,
    };
    Some(Aws::new(options))
}

fn bearer(options: &BearerOptions) -> Bearer {
    Bearer::new(ogive_signing::BearerOptions {
        token_endpoint: options
            .token_endpoint
            .as_ref()
            .map_or_else(String::new, |url| url.0.clone()),
        client_id: options.client_id.clone(),
        client_secret: secret(&options.client_secret),
        authentication: match options.client_authentication {
            ClientAuthenticationWord::Basic => ClientAuthentication::Basic,
            ClientAuthenticationWord::Post => ClientAuthentication::Post,
        },
        scopes: options.scopes.clone(),
        audience: options.audience.clone(),
        renew_before: options.renew_before.0,
        timeout: options.timeout.0,
    })
}

fn message_signature(options: &MessageSignatureOptions) -> Result<MessageSignature, String> {
    let algorithm = match options.algorithm {
        SignatureAlgorithm::Ed25519 => Algorithm::Ed25519,
        SignatureAlgorithm::EcdsaP256 => Algorithm::EcdsaP256,
        SignatureAlgorithm::EcdsaP384 => Algorithm::EcdsaP384,
        SignatureAlgorithm::RsaPss => Algorithm::RsaPss,
        SignatureAlgorithm::RsaPkcs1 => Algorithm::RsaPkcs1,
        SignatureAlgorithm::Hmac => Algorithm::Hmac,
    };
    let key = SigningKey::read(algorithm, &secret(&options.key));
    let components = options.components.iter().map(|name| Component::parse(name));
    MessageSignature::new(ogive_signing::MessageSignatureOptions {
        key: key.map_err(|why| format!("`message_signature.key`: {why}"))?,
        key_id: options.key_id.clone(),
        components: components.collect::<Result<_, _>>()?,
        label: options.label.clone(),
        expires: options.expires.map(|expires| expires.0),
        names_algorithm: options.include_algorithm,
        tag: options.tag.clone(),
        digest: match options.digest {
            DigestWord::Sha256 => Digest::Sha256,
            DigestWord::Sha512 => Digest::Sha512,
        },
    })
    .map_err(|why| format!("`message_signature`: {why}"))
}
