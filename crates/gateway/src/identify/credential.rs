//! What a caller was known by, kept for operations that go on behind their request, so that it can be judged once more.
//!
//! Kept is what the client has brought, not what came of it: whether it still holds is found out by the same judgement as for
//! a request that comes now ([`Authentication::judge_kept`]).

use std::sync::Arc;

use http::{HeaderValue, request::Parts};
use ogive_edge::error::RequestError;
use ogive_hooks::RequestHead;
use ogive_identity::{
    Caller,
    digest::{Digest, digest_of},
};
use ogive_server::{ClientCertificate, offload::Offload};

use super::tokens::Authentication;
use crate::shared::context::Identity;

/// What a client has brought. Never shown.
pub(crate) struct Credential {
    token: Option<Box<str>>,
    api_key: Box<[HeaderValue]>,
    certificate: Option<ClientCertificate>,
    /// What components look at.
    head: Option<RequestHead>,
    /// Equal for equal ones.
    digest: Digest,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

impl Credential {
    pub(crate) fn digest(&self) -> &Digest {
        &self.digest
    }
    /// What components look at, if any do.
    pub(crate) fn head(&self) -> Option<&RequestHead> {
        self.head.as_ref()
    }
}

/// All of a head, for a digest.
fn pieces(head: &RequestHead) -> impl Iterator<Item = &[u8]> {
    let headers = head.headers.iter();
    let headers = headers.flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
    let line = [head.method.as_str().as_bytes(), head.path.as_bytes()];
    line.into_iter().chain(headers)
}

/// Who can say whether a credential holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Provider {
    /// This process: API keys, certificates and components.
    Local,
    /// Key sets of issuers.
    Keys,
    /// The endpoint that is asked about opaque tokens.
    Introspection,
}

impl Authentication {
    /// What a request has brought, to be kept; `None` if that was nothing.
    pub(crate) fn credential(&self, parts: &Parts, identity: &Identity) -> Option<Credential> {
        let token = self.token(&parts.headers).ok().flatten();
        let certificate = self.certificate(parts, identity).cloned();
        let api_key = if self.knows_api_keys() {
            identity.api_key.clone()
        } else {
            Box::default()
        };
        let head = self.kept_head(parts);
        if token.is_none() && api_key.is_empty() && certificate.is_none() && head.is_none() {
            return None;
        }
        let looked_at = head.iter().flat_map(pieces);
        let shown = certificate.iter().map(|shown| &*shown.0);
        let texts = token.iter().map(|token| token.as_bytes());
        let keys = api_key.iter().map(HeaderValue::as_bytes);
        let mut all = Vec::new();
        for (kind, text) in texts
            .map(|text| (0, text))
            .chain(keys.map(|text| (1, text)))
            .chain(shown.map(|text| (2, text)))
            .chain(looked_at.map(|text| (3, text)))
        {
            all.push(kind);
            all.extend_from_slice(&(text.len() as u64).to_le_bytes());
            all.extend_from_slice(text);
        }
        Some(Credential {
            token: token.map(Into::into),
            digest: digest_of(&all),
            api_key,
            certificate,
            head,
        })
    }

    /// Who can say whether what was kept still holds.
    pub(crate) fn provider_of(&self, kept: &Credential) -> Provider {
        match &kept.token {
            None => Provider::Local,
            Some(token) if self.is_opaque(token) => Provider::Introspection,
            Some(_) => Provider::Keys,
        }
    }

    /// Who asks now by what was kept, beside what components say of it ([`Self::ask_about`]); `None` if it says nothing any
    /// more.
    pub(crate) async fn judge_kept(
        &self,
        kept: &Credential,
        offload: &Offload,
    ) -> Option<Result<Arc<Caller>, RequestError>> {
        let without = || self.without_token(&kept.api_key, || kept.certificate.as_ref());
        self.judge(Ok(kept.token.as_deref()), without, offload)
            .await
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use ogive_base::{Peer, SourceId};

    use super::*;
    use crate::identify::tokens::AuthenticationOptions;

    fn credential(token: Option<&str>, api_key: Option<&str>) -> Option<Credential> {
        let yaml = "authentication: { router: { introspection: { endpoint: 'https://a.example', \
                    client_id: a, client_secret: b }, api_keys: { file: none } } }\n";
        let config = ogive_config::load(SourceId(0), yaml, &|_| None).unwrap();
        let options = AuthenticationOptions::new(&config).unwrap();
        let authentication = Authentication::start(options, None);
        let mut request = Request::new(());
        if let Some(token) = token {
            let value = format!("Bearer {token}").parse().unwrap();
            request.headers_mut().insert("authorization", value);
        }
        let peer = Peer::Tcp(([127, 0, 0, 1], 1).into());
        let identity = Identity {
            api_key: api_key.iter().map(|key| key.parse().unwrap()).collect(),
            ..Identity::of(peer)
        };
        authentication.credential(&request.into_parts().0, &identity)
    }

    #[test]
    fn what_is_kept_is_known_by_all_of_it_and_shows_nothing() {
        let of = |token, key| *credential(token, key).unwrap().digest();
        assert_eq!(of(Some("a"), None), of(Some("a"), None));
        let all = [
            of(Some("a"), None),
            of(Some("b"), None),
            of(None, Some("a")),
            of(Some("a"), Some("a")),
        ];
        let distinct: std::collections::BTreeSet<Digest> = all.into();
        assert_eq!(distinct.len(), all.len());
        assert!(credential(None, None).is_none());
        let shown = format!("{:?}", credential(Some("s3cret"), Some("k3y")));
        assert!(
            !shown.contains("s3cret") && !shown.contains("k3y"),
            "{shown}"
        );
    }
}
