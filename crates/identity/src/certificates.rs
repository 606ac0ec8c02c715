//! Client certificates as callers: the listener has checked who signed one and when it holds; here is what it says.
//!
//! Nothing of it ever comes from a header. `sub` is the one name of the kind that the configuration asks for; a certificate
//! that has none of that kind, or several, names nobody. Everything that it says is in the claim `certificate`.

use std::{
    fmt::Write,
    sync::Arc,
    time::{Duration, Instant},
};

use ogive_base::encode::hex;
use serde_json::{Map, json};
use x509_parser::{
    certificate::X509Certificate,
    extensions::GeneralName,
    prelude::FromDer,
    x509::{AttributeTypeAndValue, X509Name},
};

use crate::{
    caller::{Caller, CallerOptions},
    digest::digest_of,
    error::TokenError,
    inflight::AnswerCache,
    token_cache::size_of,
};

/// Which name of a certificate is who it is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CertificateName {
    /// The whole subject, as RFC 4514 writes it.
    Subject,
    /// The common name in it.
    CommonName,
    /// The alternative name that is a host.
    Dns,
    /// The alternative name that is a URI, as SPIFFE has it.
    Uri,
    /// The alternative name that is an address of mail.
    Email,
}

/// Most bytes of certificates that are remembered.
const CACHE_BYTES_MAX: usize = 4 << 20;
/// How long one is remembered; its own end counts all the time.
const REMEMBERED: Duration = Duration::from_secs(3_600);

/// Reads certificates, each once.
#[derive(Debug)]
pub struct Certificates {
    name: CertificateName,
    known: AnswerCache<Result<KnownCertificate, TokenError>>,
}

/// A certificate that was read.
#[derive(Clone, Debug)]
struct KnownCertificate {
    caller: Arc<Caller>,
    /// Seconds since 1970 between which it holds.
    holds: (i64, i64),
}

impl Certificates {
    /// Those whose name is of a kind.
    pub fn new(name: CertificateName) -> Self {
        Certificates {
            name,
            known: AnswerCache::new(CACHE_BYTES_MAX),
        }
    }

    /// Whose a certificate is that the listener has accepted, at a time in seconds since 1970: a connection may outlive it.
    pub fn caller(&self, der: &[u8], now: u64) -> Result<Arc<Caller>, TokenError> {
        let digest = digest_of(der);
        let known = self.known.get(&digest, Instant::now()).unwrap_or_else(|| {
            let read = read(der, self.name);
            let until = Instant::now() + REMEMBERED;
            self.known
                .insert(digest, read.clone(), until, size_of(der.len()));
            read
        })?;
        let (begin, end) = known.holds;
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        if (begin..=end).contains(&now) {
            Ok(known.caller)
        } else {
            Err(TokenError::Certificate(
                "the client certificate does not hold any more, or not yet",
            ))
        }
    }
}

fn read(der: &[u8], name: CertificateName) -> Result<KnownCertificate, TokenError> {
    const UNREADABLE: TokenError = TokenError::Certificate("the client certificate cannot be read");
    let (rest, certificate) = X509Certificate::from_der(der).map_err(|_| UNREADABLE)?;
    if !rest.is_empty() {
        return Err(UNREADABLE);
    }
    let names = Names::of(&certificate).ok_or(UNREADABLE)?;
    let found: &[String] = match name {
        CertificateName::Subject => std::slice::from_ref(&names.subject),
        CertificateName::CommonName => &names.common,
        CertificateName::Dns => &names.dns,
        CertificateName::Uri => &names.uris,
        CertificateName::Email => &names.emails,
    };
    let [sub] = found else {
        return Err(TokenError::Certificate(
            "the client certificate has not exactly one name of the kind that is asked for",
        ));
    };
    if sub.is_empty() {
        return Err(TokenError::Certificate(
            "the name in the client certificate is empty",
        ));
    }
    let mut claims = Map::new();
    claims.insert("sub".into(), sub.as_str().into());
    claims.insert(
        "certificate".into(),
        json!({
            "subject": names.subject,
            "issuer": distinguished_name(certificate.issuer()),
            "common_name": names.common,
            "dns": names.dns,
            "uri": names.uris,
            "email": names.emails,
            "serial": hex(certificate.raw_serial()),
            "sha256": hex(&digest_of(der)),
        }),
    );
    let no_claims = CallerOptions {
        scopes: Vec::new(),
        policies: Vec::new(),
    };
    let validity = certificate.validity();
    let end = u64::try_from(validity.not_after.timestamp()).ok();
    Ok(KnownCertificate {
        caller: Arc::new(Caller {
            end,
            ..Caller::proved(claims, &no_claims)
        }),
        holds: (
            validity.not_before.timestamp(),
            validity.not_after.timestamp(),
        ),
    })
}

/// The names of a certificate.
struct Names {
    subject: String,
    common: Vec<String>,
    dns: Vec<String>,
    uris: Vec<String>,
    emails: Vec<String>,
}

impl Names {
    /// `None` if one of them is no text.
    fn of(certificate: &X509Certificate<'_>) -> Option<Self> {
        let subject = certificate.subject();
        let common = subject.iter_common_name();
        let common: Option<Vec<String>> =
            common.map(|n| n.as_str().ok().map(str::to_owned)).collect();
        let mut names = Names {
            subject: distinguished_name(subject),
            common: common?,
            dns: Vec::new(),
            uris: Vec::new(),
            emails: Vec::new(),
        };
        let alternative = certificate.subject_alternative_name().ok()?;
        for name in alternative
            .iter()
            .flat_map(|names| &names.value.general_names)
        {
            match name {
                GeneralName::DNSName(name) => names.dns.push((*name).to_owned()),
                GeneralName::URI(name) => names.uris.push((*name).to_owned()),
                GeneralName::RFC822Name(name) => names.emails.push((*name).to_owned()),
                GeneralName::Invalid(..) => return None,
                _ => {}
            }
        }
        Some(names)
    }
}

/// A name as RFC 4514 writes it, so that what a value says is never taken for another part.
fn distinguished_name(name: &X509Name<'_>) -> String {
    let parts = name.iter_rdn().map(|part| {
        let values: Vec<String> = part.iter().map(attribute).collect();
        values.join("+")
    });
    let mut parts: Vec<String> = parts.collect();
    parts.reverse();
    parts.join(",")
}

/// Types that have a name in RFC 4514, section 3.
const TYPES: [(&str, &str); 9] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "STREET"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
];

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let oid = attribute.attr_type().to_id_string();
    let word = TYPES
        .iter()
        .find(|(id, _)| *id == oid)
        .map(|(_, word)| *word);
    match (word, attribute.as_str()) {
        (Some(word), Ok(value)) => format!("{word}={}", escaped(value)),
        (word, _) => {
            let bytes = hex(attribute.attr_value().data);
            format!("{}=#{bytes}", word.unwrap_or(&oid))
        }
    }
}

/// RFC 4514, section 2.4.
fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (at, c) in value.chars().enumerate() {
        let is_edge = at == 0 && c == '#' || (at == 0 || at == last) && c == ' ';
        if is_edge || "\"+,;<>=\\".contains(c) {
            out.push('\\');
            out.push(c);
        } else if c.is_control() {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                let _ = write!(out, "\\{byte:02X}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;
    use crate::key_source::now;

    fn made(common: &[&str], names: Vec<SanType>) -> Vec<u8> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::OrganizationName, "Acme, Inc");
        for name in common {
            params.distinguished_name.push(DnType::CommonName, *name);
        }
        params.subject_alt_names = names;
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn a_certificate_says_who_it_is_of_and_nothing_in_a_name_is_taken_for_another_part() {
        let uri = SanType::URI("spiffe://a/b".try_into().unwrap());
        let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
        let der = made(
            &["ida,O=Root"],
            vec![uri, dns("a.example"), dns("b.example")],
        );
        let sub = |name| {
            let caller = Certificates::new(name).caller(&der, now())?;
            assert!(caller.granted.authenticated && caller.granted.scopes.is_empty());
            Ok::<_, TokenError>(caller.claim("sub").unwrap().into_owned())
        };
        assert_eq!(sub(CertificateName::CommonName).unwrap(), "ida,O=Root");
        assert_eq!(
            sub(CertificateName::Subject).unwrap(),
            "CN=ida\\,O\\=Root,O=Acme\\, Inc"
        );
        assert_eq!(sub(CertificateName::Uri).unwrap(), "spiffe://a/b");
        assert!(sub(CertificateName::Dns).is_err(), "two are none");
        assert!(sub(CertificateName::Email).is_err());
        let caller = Certificates::new(CertificateName::Uri)
            .caller(&der, now())
            .unwrap();
        assert_eq!(
            caller.claim("certificate.dns.1").as_deref(),
            Some("b.example")
        );
        assert_eq!(
            caller.claim("certificate.sha256").unwrap(),
            hex(&digest_of(&der))
        );
    }

    #[test]
    fn a_certificate_that_has_ended_or_is_none_names_nobody() {
        let der = made(&["ida"], Vec::new());
        let known = Certificates::new(CertificateName::CommonName);
        assert!(known.caller(&der, now()).is_ok());
        assert!(known.caller(&der, u64::MAX / 2).is_err());
        assert!(known.caller(&der, 0).is_err());
        for end in [0, 1, der.len() / 2, der.len() - 1] {
            assert!(known.caller(&der[..end], now()).is_err());
        }
        assert!(known.caller(&[&der[..], b"x"].concat(), now()).is_err());
        assert_eq!(escaped(" #a\u{0}b "), "\\ #a\\00b\\ ");
        assert_eq!(escaped("#"), "\\#");
    }
}
