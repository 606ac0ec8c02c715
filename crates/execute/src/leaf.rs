//! Result coercion of leaves (specification 3.5): what a subgraph answered must be a value of the client's type.
//!
//! Values are copied as they were written; numbers and custom scalars pass byte-exact. The one exception is an `Int`
//! written with a fraction or exponent (`1.0`), which is a whole number to JSON but would surprise clients.

use std::borrow::Cow;

use ogive_json::{Kind, Scanner};
use ogive_plan::{LeafKind, Plan};

/// A checked leaf: the bytes to write.
pub(crate) type Checked<'a> = Option<Cow<'a, [u8]>>;

/// Checks one non-null value that a scanner has accepted; `None` if it is no value of the type.
pub(crate) fn check<'a>(plan: &Plan, kind: LeafKind, value: &'a [u8]) -> Checked<'a> {
    let mut scanner = Scanner::new(value);
    let found = scanner.peek().ok()?;
    let fits = match kind {
        LeafKind::Any => true,
        LeafKind::Int => return int(value, found),
        LeafKind::Float => found == Kind::Number,
        LeafKind::String => found == Kind::String,
        LeafKind::Boolean => matches!(found, Kind::True | Kind::False),
        LeafKind::Id => match found {
            Kind::String => true,
            Kind::Number => scanner.number().ok()?.integer,
            _ => false,
        },
        LeafKind::Enum(values) => {
            if found != Kind::String {
                return None;
            }
            let name = scanner.string().ok()?.unescape();
            let values = plan.enums.get(values)?;
            values
                .binary_search_by(|value| (**value).cmp(&*name))
                .is_ok()
        }
    };
    fits.then_some(Cow::Borrowed(value))
}

fn int(value: &[u8], found: Kind) -> Checked<'_> {
    if found != Kind::Number {
        return None;
    }
    let text = std::str::from_utf8(value).ok()?;
    if text.parse::<i32>().is_ok() {
        return Some(Cow::Borrowed(value));
    }
    let number = text.parse::<f64>().ok()?;
    let whole = number as i32;
    // Saturation and rounding both show as a difference.
    (f64::from(whole) == number).then(|| Cow::Owned(whole.to_string().into_bytes()))
}

/// The name of the type, for messages.
pub(crate) fn type_name(kind: LeafKind) -> &'static str {
    match kind {
        LeafKind::Int => "Int",
        LeafKind::Float => "Float",
        LeafKind::String => "String",
        LeafKind::Boolean => "Boolean",
        LeafKind::Id => "ID",
        LeafKind::Enum(_) => "the field's enum",
        LeafKind::Any => "the field's scalar",
    }
}
