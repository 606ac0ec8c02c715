//! Reads a token: a JWS in its compact form (RFC 7515, section 3.1). Anything that this reader would have to guess about is
//! refused: padding, white space, members that are there twice, extensions that must be understood, encrypted tokens.

use serde_json::{Map, Value};

use crate::{algorithm::Algorithm, base64url, error::TokenError, json};

/// Largest token in bytes, unless the configuration says otherwise.
pub const TOKEN_BYTES_MAX: usize = 16 << 10;
/// Longest name of a key, in bytes.
const KID_BYTES_MAX: usize = 1 << 10;

/// What a token says of itself. Nothing of it is proved.
pub struct Token<'t> {
    /// How it is signed.
    pub algorithm: Algorithm,
    /// With which key.
    pub kid: Option<String>,
    /// What it claims.
    pub claims: Map<String, Value>,
    /// What is signed.
    pub signed: &'t [u8],
    /// The signature.
    pub signature: Vec<u8>,
}

/// Never shows a token.
impl std::fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

fn malformed<T>(why: &'static str) -> Result<T, TokenError> {
    Err(TokenError::Malformed(why))
}

impl<'t> Token<'t> {
    /// Reads a token of at most `bytes_max` bytes.
    pub fn parse(text: &'t [u8], bytes_max: usize) -> Result<Self, TokenError> {
        if text.len() > bytes_max {
            return malformed("the token is too long");
        }
        let mut parts = text.split(|byte| *byte == b'.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return malformed("the token has not three parts");
        };
        let signed = &text[..header.len() + 1 + payload.len()];
        let (Some(header), Some(payload), Some(signature)) = (
            base64url::decode(header),
            base64url::decode(payload),
            base64url::decode(signature),
        ) else {
            return malformed("the token is not base64url");
        };
        if signature.is_empty() {
            return malformed("the token is not signed");
        }
        let Some(header) = json::object(&header) else {
            return malformed(
                "the header of the token is no JSON object, has a member twice, or is nested deeper than 32",
            );
        };
        let (algorithm, kid) = read_header(&header)?;
        let Some(claims) = json::object(&payload) else {
            return malformed(
                "the claims of the token are no JSON object, have a member twice, or are nested deeper than 32",
            );
        };
        Ok(Token {
            algorithm,
            kid,
            claims,
            signed,
            signature,
        })
    }
}

fn read_header(header: &Map<String, Value>) -> Result<(Algorithm, Option<String>), TokenError> {
    // Nothing that has to be understood is. RFC 7797 takes `b64` to be such a thing.
    if header.contains_key("crit") || header.contains_key("b64") {
        return malformed("the token needs extensions that are not supported");
    }
    // `zip` means nothing in a signed token, and is ignored (RFC 7515, section 4).
    if header.contains_key("enc") {
        return malformed("the token is encrypted");
    }
    let algorithm = match header.get("alg") {
        Some(Value::String(name)) => Algorithm::parse(name).ok_or(TokenError::Algorithm)?,
        _ => return malformed("the token does not say how it is signed"),
    };
    let kid = match header.get("kid") {
        None => None,
        Some(Value::String(kid)) if kid.len() <= KID_BYTES_MAX => Some(kid.clone()),
        Some(_) => return malformed("the token names its key in a way that is no text"),
    };
    match header.get("typ") {
        None => {}
        Some(Value::String(typ)) if is_for_access(typ) => {}
        Some(_) => return malformed("the token is of a type that gives no access"),
    }
    Ok((algorithm, kid))
}

/// Tokens for other ends say so by a type of their own, such as `logout+jwt` or `dpop+jwt`, and are signed with the same
/// keys (RFC 8725, section 3.11). Access tokens have `at+jwt` (RFC 9068), `JWT`, or none.
fn is_for_access(typ: &str) -> bool {
    let typ = typ.to_ascii_lowercase();
    let typ = typ.strip_prefix("application/").unwrap_or(&typ);
    typ == "at+jwt" || !typ.ends_with("+jwt")
}
