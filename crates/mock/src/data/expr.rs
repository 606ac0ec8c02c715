//! A small expression language for computed fields: `price > 1000 ? 0 : weight / 2`.
//!
//! Literals (numbers, `'text'`, `"text"`, `true`, `false`, `null`), fields (`price`, `dimensions.width`), arguments
//! (`$first`), `+ - * / %`, comparisons, `&& || !`, `? :`, parentheses and the functions of [`FUNCTIONS`].
//! Arithmetic with `null` is `null`; a comparison of `null` by order is false; `+` with a string joins.
//! Division of integers stays an integer when it is exact. Nesting is bounded by [`DEPTH_MAX`].

use serde_json::{Number, Value};

/// Deepest nesting of an expression.
const DEPTH_MAX: usize = 64;

/// Functions and their number of arguments.
const FUNCTIONS: [(&str, usize); 9] = [
    ("len", 1),
    ("floor", 1),
    ("ceil", 1),
    ("round", 1),
    ("lower", 1),
    ("upper", 1),
    ("string", 1),
    ("min", 2),
    ("max", 2),
];

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Literal(Value),
    /// A field of the object, by path.
    Field(Vec<String>),
    /// An argument, by path.
    Argument(Vec<String>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary(Box<Expr>, Op, Box<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    Call(usize, Vec<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// Operators by binding strength, loosest first; longer spellings before their prefixes.
const LEVELS: [&[(&str, Op)]; 6] = [
    &[("||", Op::Or)],
    &[("&&", Op::And)],
    &[("==", Op::Equal), ("!=", Op::NotEqual)],
    &[
        ("<=", Op::LessEqual),
        (">=", Op::GreaterEqual),
        ("<", Op::Less),
        (">", Op::Greater),
    ],
    &[("+", Op::Add), ("-", Op::Subtract)],
    &[("*", Op::Multiply), ("/", Op::Divide), ("%", Op::Remainder)],
];

/// What names mean.
pub(crate) trait Scope {
    /// The value of a field path of the object; `null` if there is none.
    fn field(&self, path: &[String]) -> Result<Value, String>;
    /// The value of an argument path; `null` if there is none.
    fn argument(&self, path: &[String]) -> Value;
}

impl Expr {
    /// Reads an expression.
    pub(crate) fn parse(text: &str) -> Result<Expr, String> {
        let mut reader = Reader {
            text,
            at: 0,
            depth: 0,
        };
        let expr = reader.ternary()?;
        reader.space();
        if reader.at < text.len() {
            return Err(reader.unexpected());
        }
        Ok(expr)
    }

    /// Its value.
    pub(crate) fn eval(&self, scope: &dyn Scope) -> Result<Value, String> {
        Ok(match self {
            Expr::Literal(value) => value.clone(),
            Expr::Field(path) => scope.field(path)?,
            Expr::Argument(path) => scope.argument(path),
            Expr::Not(inner) => Value::Bool(!truthy(&inner.eval(scope)?)),
            Expr::Negate(inner) => binary(&Value::from(0), Op::Subtract, &inner.eval(scope)?)?,
            Expr::If(condition, then, otherwise) => {
                let branch = if truthy(&condition.eval(scope)?) {
                    then
                } else {
                    otherwise
                };
                branch.eval(scope)?
            }
            Expr::Binary(left, Op::And, right) => {
                let left = left.eval(scope)?;
                if truthy(&left) {
                    right.eval(scope)?
                } else {
                    left
                }
            }
            Expr::Binary(left, Op::Or, right) => {
                let left = left.eval(scope)?;
                if truthy(&left) {
                    left
                } else {
                    right.eval(scope)?
                }
            }
            Expr::Binary(left, op, right) => binary(&left.eval(scope)?, *op, &right.eval(scope)?)?,
            Expr::Call(function, arguments) => {
                let values: Vec<Value> = arguments
                    .iter()
                    .map(|a| a.eval(scope))
                    .collect::<Result<_, _>>()?;
                call(FUNCTIONS[*function].0, &values)?
            }
        })
    }

    /// Whether it mentions an argument.
    pub(crate) fn uses_arguments(&self) -> bool {
        match self {
            Expr::Literal(_) | Expr::Field(_) => false,
            Expr::Argument(_) => true,
            Expr::Not(e) | Expr::Negate(e) => e.uses_arguments(),
            Expr::Binary(a, _, b) => a.uses_arguments() || b.uses_arguments(),
            Expr::If(a, b, c) => a.uses_arguments() || b.uses_arguments() || c.uses_arguments(),
            Expr::Call(_, arguments) => arguments.iter().any(Expr::uses_arguments),
        }
    }
}

fn truthy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(n) => n.as_f64() != Some(0.0),
        Value::String(s) => !s.is_empty(),
        _ => true,
    }
}

/// A value as text inside a template; `null` is empty.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Equality of scalars by what they spell: `1` and `"1"` are equal, as an ID may come as either.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => a == b,
        _ => text_of(a) == text_of(b),
    }
}

fn binary(left: &Value, op: Op, right: &Value) -> Result<Value, String> {
    use std::cmp::Ordering;
    let compare = || match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    };
    let ordered = |accept: fn(Ordering) -> bool| Value::Bool(compare().is_some_and(accept));
    Ok(match op {
        Op::Equal => Value::Bool(same(left, right)),
        Op::NotEqual => Value::Bool(!same(left, right)),
        Op::Less => ordered(Ordering::is_lt),
        Op::LessEqual => ordered(Ordering::is_le),
        Op::Greater => ordered(Ordering::is_gt),
        Op::GreaterEqual => ordered(Ordering::is_ge),
        Op::And | Op::Or => Value::Null,
        Op::Add if left.is_string() || right.is_string() => {
            Value::String(text_of(left) + &text_of(right))
        }
        _ if left.is_null() || right.is_null() => Value::Null,
        _ => {
            let (Value::Number(a), Value::Number(b)) = (left, right) else {
                return Err(format!("cannot compute with {left} and {right}"));
            };
            arithmetic(a, op, b)
        }
    })
}

fn arithmetic(a: &Number, op: Op, b: &Number) -> Value {
    if let (Some(x), Some(y)) = (a.as_i64(), b.as_i64()) {
        let exact = match op {
            Op::Add => x.checked_add(y),
            Op::Subtract => x.checked_sub(y),
            Op::Multiply => x.checked_mul(y),
            Op::Divide if y != 0 && x % y == 0 => x.checked_div(y),
            Op::Remainder => x.checked_rem(y),
            _ => None,
        };
        if let Some(value) = exact {
            return value.into();
        }
    }
    let (x, y) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(0.0));
    let value = match op {
        Op::Add => x + y,
        Op::Subtract => x - y,
        Op::Multiply => x * y,
        Op::Divide => x / y,
        _ => x % y,
    };
    // Division by zero is null: JSON has no infinity.
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn call(name: &str, values: &[Value]) -> Result<Value, String> {
    let first = &values[0];
    if first.is_null() {
        return Ok(Value::Null);
    }
    let number = |v: &Value| {
        v.as_f64()
            .ok_or_else(|| format!("{name}: {v} is no number"))
    };
    let whole = |f: f64| Value::from(f as i64);
    Ok(match name {
        "len" => match first {
            Value::String(s) => s.chars().count().into(),
            Value::Array(items) => items.len().into(),
            _ => return Err(format!("len: {first} has no length")),
        },
        "floor" => whole(number(first)?.floor()),
        "ceil" => whole(number(first)?.ceil()),
        "round" => whole(number(first)?.round()),
        "lower" => text_of(first).to_lowercase().into(),
        "upper" => text_of(first).to_uppercase().into(),
        "string" => text_of(first).into(),
        _ => {
            let second = &values[1];
            let first_is_less = number(first)? <= number(second)?;
            if first_is_less == (name == "min") {
                first.clone()
            } else {
                second.clone()
            }
        }
    })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }
    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }
    fn eat(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }
    fn unexpected(&self) -> String {
        match self.rest().chars().next() {
            Some(c) => format!(
                "unexpected \"{c}\" at offset {} of \"{}\"",
                self.at, self.text
            ),
            None => format!("\"{}\" ends too early", self.text),
        }
    }
    fn ternary(&mut self) -> Result<Expr, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("the expression is nested too deeply".to_string());
        }
        let condition = self.level(0)?;
        let expr = if self.eat("?") {
            let then = self.ternary()?;
            if !self.eat(":") {
                return Err(self.unexpected());
            }
            let otherwise = self.ternary()?;
            Expr::If(Box::new(condition), Box::new(then), Box::new(otherwise))
        } else {
            condition
        };
        self.depth -= 1;
        Ok(expr)
    }
    fn level(&mut self, level: usize) -> Result<Expr, String> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.level(level + 1)?;
        let mut terms = 0;
        while let Some((_, op)) = operators.iter().find(|(token, _)| self.eat(token)) {
            terms += 1;
            if terms > DEPTH_MAX {
                return Err("the expression is too long".to_string());
            }
            let right = self.level(level + 1)?;
            left = Expr::Binary(Box::new(left), *op, Box::new(right));
        }
        Ok(left)
    }
    fn unary(&mut self) -> Result<Expr, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("the expression is nested too deeply".to_string());
        }
        let expr = if self.eat("!") {
            Expr::Not(Box::new(self.unary()?))
        } else if self.eat("-") {
            Expr::Negate(Box::new(self.unary()?))
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Ok(expr)
    }
    fn primary(&mut self) -> Result<Expr, String> {
        if self.eat("(") {
            let inner = self.ternary()?;
            return if self.eat(")") {
                Ok(inner)
            } else {
                Err(self.unexpected())
            };
        }
        if self.eat("$") {
            let path = self.path()?;
            return Ok(Expr::Argument(path));
        }
        self.space();
        let first = self.rest().chars().next();
        match first {
            Some(quote @ ('\'' | '"')) => {
                let inner = &self.rest()[1..];
                let end = inner
                    .find(quote)
                    .ok_or_else(|| format!("\"{}\" has an open quote", self.text))?;
                let value = Value::String(inner[..end].to_string());
                self.at += end + 2;
                Ok(Expr::Literal(value))
            }
            Some(c) if c.is_ascii_digit() => {
                let end = self
                    .rest()
                    .find(|c: char| !c.is_ascii_digit() && c != '.')
                    .unwrap_or(self.rest().len());
                let number: Number =
                    serde_json::from_str(&self.rest()[..end]).map_err(|_| self.unexpected())?;
                self.at += end;
                Ok(Expr::Literal(Value::Number(number)))
            }
            _ => self.named(),
        }
    }
    fn named(&mut self) -> Result<Expr, String> {
        let path = self.path()?;
        if let [word] = path.as_slice() {
            match word.as_str() {
                "true" => return Ok(Expr::Literal(true.into())),
                "false" => return Ok(Expr::Literal(false.into())),
                "null" => return Ok(Expr::Literal(Value::Null)),
                _ => {}
            }
            if self.eat("(") {
                let function = FUNCTIONS.iter().position(|(name, _)| name == word);
                let function = function.ok_or_else(|| format!("unknown function \"{word}\""))?;
                let mut arguments = vec![self.ternary()?];
                while self.eat(",") {
                    arguments.push(self.ternary()?);
                }
                if !self.eat(")") {
                    return Err(self.unexpected());
                }
                if arguments.len() != FUNCTIONS[function].1 {
                    return Err(format!("\"{word}\" takes {} values", FUNCTIONS[function].1));
                }
                return Ok(Expr::Call(function, arguments));
            }
        }
        Ok(Expr::Field(path))
    }
    fn path(&mut self) -> Result<Vec<String>, String> {
        let mut path = Vec::new();
        loop {
            let rest = self.rest();
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            if end == 0 || rest.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(self.unexpected());
            }
            path.push(rest[..end].to_string());
            self.at += end;
            if !self.rest().starts_with('.') {
                return Ok(path);
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Fields(Value);
    impl Scope for Fields {
        fn field(&self, path: &[String]) -> Result<Value, String> {
            let pointer = format!("/{}", path.join("/"));
            Ok(self.0.pointer(&pointer).cloned().unwrap_or(Value::Null))
        }
        fn argument(&self, path: &[String]) -> Value {
            json!({"n": 3})[&path[0]].clone()
        }
    }

    #[test]
    fn computes() {
        let scope = Fields(json!({"price": 899, "weight": 100, "name": "Chair", "d": {"w": 7}}));
        for (text, expected) in [
            ("price > 1000 ? 0 : weight / 2", json!(50)),
            ("missing > 1000 ? 0 : missing / 2", json!(null)),
            ("1 + 2 * 3 - 4 / 8", json!(6.5)),
            ("(1 + 2) * -3 % 4", json!(-1)),
            ("name + '-' + d.w", json!("Chair-7")),
            ("price == '899' && !(weight < 100)", json!(true)),
            ("d.w >= 7 || false", json!(true)),
            ("$n * 2", json!(6)),
            ("len(name) + max(1, floor(2.9))", json!(7)),
            ("1 / 0", json!(null)),
            ("null == missing ? \"none\" : 'some'", json!("none")),
        ] {
            assert_eq!(
                Expr::parse(text).unwrap().eval(&scope),
                Ok(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for text in [
            "",
            "1 +",
            "a ? b",
            "(a",
            "a b",
            "f(1)",
            "len(1, 2)",
            "'x",
            "$",
            "a..b",
            "1.2.3",
        ] {
            assert!(Expr::parse(text).is_err(), "{text}");
        }
        assert!(Expr::parse(&"(".repeat(100_000)).is_err());
        assert!(Expr::parse(&"-".repeat(100_000)).is_err());
        assert!(Expr::parse(&"1+".repeat(100_000)).is_err());
    }
}
