//! Numbers: comparison, arithmetic, conversion.
//!
//! A number is read only where a method needs its value. Whole numbers are exact within 64 bits, comparisons within 128;
//! other numbers are IEEE 754 doubles.

use std::cmp::Ordering;

use super::{
    calls::Call,
    eval::{Result, Run},
    heap::{Slice, Value},
};
use crate::{kinds::Kinds, method::Method};

/// Most bytes of a whole number that is read exactly.
const INTEGER_BYTES_MAX: usize = 40;

/// A number that a method calculates with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Integer(i64),
    Float(f64),
}

impl Number {
    fn read(json: &[u8]) -> Number {
        let text = std::str::from_utf8(json).unwrap_or_default();
        match text.parse() {
            Ok(integer) => Number::Integer(integer),
            Err(_) => Number::Float(text.parse().unwrap_or(f64::NAN)),
        }
    }
    fn float(self) -> f64 {
        match self {
            Number::Integer(integer) => integer as f64,
            Number::Float(float) => float,
        }
    }
    /// The number as an index of a list or a string; `None` unless it is a whole number from 0 on.
    pub(super) fn index(self) -> Option<usize> {
        match self {
            Number::Integer(integer) => usize::try_from(integer).ok(),
            // As in `2.0`.
            Number::Float(float) if float >= 0.0 && float.fract() == 0.0 && float < 4e9 => {
                Some(float as usize)
            }
            Number::Float(_) => None,
        }
    }
}

/// The order of two numbers by value.
fn compare_numbers(one: &[u8], other: &[u8]) -> Ordering {
    if one == other {
        return Ordering::Equal;
    }
    let integer = |json: &[u8]| -> Option<i128> {
        let short = json.len() <= INTEGER_BYTES_MAX;
        let text = std::str::from_utf8(json).ok().filter(|_| short)?;
        text.parse().ok()
    };
    if let (Some(one), Some(other)) = (integer(one), integer(other)) {
        return one.cmp(&other);
    }
    let (one, other) = (Number::read(one).float(), Number::read(other).float());
    one.partial_cmp(&other).unwrap_or(Ordering::Equal)
}

impl Run<'_> {
    /// Reads a number, whose bytes cost fuel.
    pub(super) fn number(&mut self, slice: Slice) -> Result<Number> {
        self.spend_bytes(slice.len())?;
        Ok(Number::read(self.heap.bytes(slice)))
    }
    /// The order of two numbers, whose bytes cost fuel.
    pub(super) fn compare_numbers(&mut self, one: Slice, other: Slice) -> Result<Ordering> {
        self.spend_bytes(one.len() + other.len())?;
        Ok(compare_numbers(
            self.heap.bytes(one),
            self.heap.bytes(other),
        ))
    }

    /// `->add(value, …)` and the others, from left to right.
    pub(super) fn call_arithmetic(&mut self, call: Call) -> Result<Value> {
        let Value::Number(slice) = call.value else {
            return Ok(Value::Missing);
        };
        let mut result = self.number(slice)?;
        for index in 0..call.arguments.len as usize {
            let argument = self.argument_of(call, index, call.value, Kinds::NUMBER)?;
            let Value::Number(slice) = argument else {
                return Ok(Value::Missing);
            };
            let operand = self.number(slice)?;
            result = match calculate(call.method, result, operand) {
                Ok(result) => result,
                Err(message) => return self.fail(call, message),
            };
        }
        match result {
            Number::Integer(integer) => self.make_number(&integer.to_string()),
            Number::Float(float) => self.make_number(&format!("{float:?}")),
        }
    }

    /// `->parseInt`, `->parseInt(base)`
    pub(super) fn call_parse_int(&mut self, call: Call) -> Result<Value> {
        let Some(given) = self.index_or(call, 0, 10)? else {
            return Ok(Value::Missing);
        };
        let base = match u32::try_from(given) {
            Ok(base @ 2..=36) => base,
            _ => return self.fail(call, "the base is not between 2 and 36"),
        };
        let integer = match call.value {
            Value::Number(slice) => match self.number(slice)? {
                Number::Integer(integer) => Some(integer),
                // Beyond 2^53 a double stands for more than one whole number.
                Number::Float(float) if float.abs() < 9_007_199_254_740_992.0 => Some(float as i64),
                Number::Float(_) => None,
            },
            Value::String(_) => i64::from_str_radix(&self.text_of(call.value)?, base).ok(),
            _ => None,
        };
        match integer {
            Some(integer) => self.make_number(&integer.to_string()),
            None => self.fail(call, "the value is no whole number of 64 bits"),
        }
    }

    /// A number of this text, which must be JSON.
    pub(super) fn make_number(&mut self, text: &str) -> Result<Value> {
        self.check_computed(text.len())?;
        let start = self.heap.scratch.len();
        self.heap.scratch.extend_from_slice(text.as_bytes());
        Ok(Value::Number(self.heap.added_since(start)))
    }
}

fn calculate(
    method: Method,
    one: Number,
    other: Number,
) -> std::result::Result<Number, &'static str> {
    const OVERFLOW: &str = "the result is too large";
    let divides = matches!(method, Method::Div | Method::Mod);
    if divides && other.float() == 0.0 {
        return Err("division by zero");
    }
    if let (Number::Integer(one), Number::Integer(other)) = (one, other) {
        let exact = match method {
            Method::Add => one.checked_add(other),
            Method::Sub => one.checked_sub(other),
            Method::Mul => one.checked_mul(other),
            Method::Mod => one.checked_rem(other),
            _ => match one.checked_rem(other) {
                // A quotient that is not whole has a fraction.
                Some(1.. | ..=-1) => return float(one as f64 / other as f64),
                _ => one.checked_div(other),
            },
        };
        return exact.map(Number::Integer).ok_or(OVERFLOW);
    }
    let (one, other) = (one.float(), other.float());
    float(match method {
        Method::Add => one + other,
        Method::Sub => one - other,
        Method::Mul => one * other,
        Method::Mod => one % other,
        _ => one / other,
    })
}

fn float(value: f64) -> std::result::Result<Number, &'static str> {
    if value.is_finite() {
        Ok(Number::Float(value))
    } else {
        Err("the result is too large")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        for (one, other, order) in [
            ("1", "1.0", Ordering::Equal),
            ("1e2", "100", Ordering::Equal),
            ("9007199254740993", "9007199254740992", Ordering::Greater),
            ("-1", "1", Ordering::Less),
            ("1e400", "1e500", Ordering::Equal),
        ] {
            let found = compare_numbers(one.as_bytes(), other.as_bytes());
            assert_eq!(found, order, "{one} {other}");
        }
    }

    #[test]
    fn results_that_cannot_be_written_are_errors() {
        let (max, zero) = (Number::Integer(i64::MAX), Number::Integer(0));
        assert!(calculate(Method::Add, max, Number::Integer(1)).is_err());
        assert!(calculate(Method::Div, max, zero).is_err());
        assert!(calculate(Method::Mod, Number::Float(1.0), zero).is_err());
        let min = Number::Integer(i64::MIN);
        assert!(calculate(Method::Div, min, Number::Integer(-1)).is_err());
        assert!(calculate(Method::Mod, min, Number::Integer(-1)).is_err());
        let huge = Number::Float(f64::MAX);
        assert!(calculate(Method::Mul, huge, huge).is_err());
    }
}
