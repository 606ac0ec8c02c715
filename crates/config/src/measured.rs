//! Which limits are only measured: `limits.warn_only`.

use ogive_limits::{Limit, WarnOnly};
use ogive_yaml::Node;

use crate::decode::{Decode, Errors};

impl Decode for Limit {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let word = errors.scalar(node, "a word")?;
        let limit = Limit::ALL.iter().find(|limit| limit.word() == word);
        if limit.is_none() {
            let known = Limit::WORDS.join("`, `");
            let message = format!("expected one of `{known}`, found `{word}`");
            errors.invalid(node.span, message, "");
        }
        limit.copied()
    }
}

impl Decode for WarnOnly {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        if node.is_list() {
            return Vec::<Limit>::decode(node, errors).map(|limits| WarnOnly::of(&limits));
        }
        bool::decode(node, errors).map(|all| {
            if all {
                WarnOnly::OPERATIONS
            } else {
                WarnOnly::default()
            }
        })
    }
}
