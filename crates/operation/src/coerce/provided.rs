//! Values from the request.

use std::borrow::Cow;

use ogive_base::FastMap;
use ogive_json::{Kind, Node, write_string};
use ogive_schema::{InputId, Schema, Type, TypeId, TypeKind, suggest};

use super::{
    ERRORS_MAX,
    inspect::{inspect, js_number},
    literal,
};

/// One step from a variable to a value inside it.
#[derive(Clone, Copy)]
enum Step<'a> {
    Index(usize),
    Field(&'a str),
}

struct Coercion<'a, 'r> {
    schema: &'a Schema,
    /// Whether messages name what the client may have meant.
    suggestions: bool,
    variable: &'a str,
    path: Vec<Step<'a>>,
    report: &'r mut Report<'r>,
    /// Whether enough is known to be wrong: whatever else is, nobody will hear of it.
    is_over: bool,
    out: Vec<u8>,
}

/// Takes what is wrong; says whether to go on.
pub(super) type Report<'r> = dyn FnMut(String) -> bool + 'r;

/// The JSON text of `value` as a `ty`. What is wrong with it is reported, until `report` has enough; the text is then
/// meaningless.
pub(super) fn coerce(
    (schema, suggestions): (&Schema, bool),
    variable: &str,
    value: Node<'_>,
    ty: Type,
    report: &mut Report<'_>,
) -> String {
    let mut coercion = Coercion {
        schema,
        suggestions,
        variable,
        path: Vec::new(),
        report,
        is_over: false,
        out: Vec::new(),
    };
    coercion.value(value, ty);
    // Only texts that were scanned, whole strings and ASCII are ever appended.
    String::from_utf8(coercion.out)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Whether lists and objects nest deeper than `most`. No recursion.
pub(super) fn is_deeper_than(value: Node<'_>, most: u32) -> bool {
    let mut pending = vec![(value, 1)];
    while let Some((value, depth)) = pending.pop() {
        if depth > most {
            return true;
        }
        // Only these nest.
        let is_open = |value: &Node<'_>| matches!(value.kind(), Kind::Array | Kind::Object);
        let below = value.items().chain(value.members().map(|(_, value)| value));
        pending.extend(below.filter(is_open).map(|value| (value, depth + 1)));
    }
    false
}

impl<'a> Coercion<'a, '_> {
    fn did_you_mean<'n>(
        &self,
        kind: Option<&str>,
        written: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> String {
        if self.suggestions {
            suggest::did_you_mean(kind, &suggest::suggestions(written, names))
        } else {
            String::new()
        }
    }

    /// Reports `value`, which stands at the current path.
    fn error(&mut self, value: Node<'_>, problem: &str) {
        self.error_about(&inspect(value), problem);
    }

    /// The same for a value as messages show it.
    fn error_about(&mut self, shown: &str, problem: &str) {
        if self.is_over {
            return;
        }
        let mut message = format!("Variable \"${}\" got invalid value ", self.variable);
        message.push_str(shown);
        if !self.path.is_empty() {
            message.push_str(&format!(" at \"{}", self.variable));
            for step in &self.path {
                match step {
                    Step::Index(i) => message.push_str(&format!("[{i}]")),
                    Step::Field(name) => message.push_str(&format!(".{name}")),
                }
            }
            message.push('"');
        }
        message.push_str("; ");
        message.push_str(problem);
        self.is_over = !(self.report)(message);
    }

    fn value(&mut self, value: Node<'a>, ty: Type) {
        if value.is_null() {
            if ty.wrapping.is_non_null() {
                let ty = self.schema.display_type(ty);
                let problem = format!("Expected non-nullable type \"{ty}\" not to be null.");
                self.error(value, &problem);
            }
            self.out.extend_from_slice(b"null");
            return;
        }
        let Some(item) = ty.wrapping.nullable().item() else {
            return self.named(value, ty.id);
        };
        let item = Type {
            id: ty.id,
            wrapping: item,
        };
        self.out.push(b'[');
        match value.kind() {
            Kind::Array => {
                for (i, value) in value.items().enumerate() {
                    if self.is_over {
                        break;
                    }
                    if i > 0 {
                        self.out.push(b',');
                    }
                    self.path.push(Step::Index(i));
                    self.value(value, item);
                    self.path.pop();
                }
            }
            // A single value stands for a list of it.
            _ => self.value(value, item),
        }
        self.out.push(b']');
    }

    fn named(&mut self, value: Node<'a>, ty: TypeId) {
        match self.schema.types[ty].kind {
            TypeKind::InputObject => match value.kind() {
                Kind::Object => self.object(value, ty),
                _ => {
                    let name = self.schema.type_name(ty);
                    self.error(value, &format!("Expected type \"{name}\" to be an object."));
                }
            },
            TypeKind::Enum => self.enum_value(value, ty),
            _ if self.schema.types[ty].built_in => self.scalar(value, ty),
            _ => write(value, &mut self.out),
        }
    }

    fn object(&mut self, value: Node<'a>, ty: TypeId) {
        let schema = self.schema;
        let mut separator = b'{';
        let mut given = Vec::new();
        let (known, unknown) = self.members(value, ty);
        for id in &schema.types[ty].input_fields {
            let field = &schema.inputs[*id];
            let name = schema.name(field.name);
            let provided = known
                .iter()
                .find(|(of, _)| of == id)
                .map(|(_, value)| *value);
            if provided.is_none() && field.default.is_none() {
                if field.ty.wrapping.is_non_null() {
                    let ty = schema.display_type(field.ty);
                    let problem =
                        format!("Field \"{name}\" of required type \"{ty}\" was not provided.");
                    self.error(value, &problem);
                }
                continue;
            }
            self.out.push(separator);
            separator = b',';
            write_string(&mut self.out, name);
            self.out.push(b':');
            match (provided, &field.default) {
                (Some(provided), _) => {
                    given.push((name, provided));
                    self.path.push(Step::Field(name));
                    self.value(provided, field.ty);
                    self.path.pop();
                }
                (None, Some(default)) => {
                    let text = literal::literal_json(schema, default, field.ty);
                    let text = text.as_deref().unwrap_or("null");
                    self.out.extend_from_slice(text.as_bytes());
                }
                (None, None) => {}
            }
        }
        if separator == b'{' {
            self.out.push(b'{');
        }
        self.out.push(b'}');
        self.unknown_fields(value, &unknown, ty);
        if schema.types[ty].one_of {
            self.one_of(value, &given, ty);
        }
    }

    /// The members of an object that its type knows, of those with equal keys the last one, and the names of as many
    /// others as anybody will hear of.
    fn members(
        &self,
        value: Node<'a>,
        ty: TypeId,
    ) -> (Vec<(InputId, Node<'a>)>, Vec<Cow<'a, str>>) {
        let (mut known, mut unknown): (Vec<(InputId, Node<'a>)>, Vec<Cow<'a, str>>) =
            Default::default();
        for (name, value) in value.members() {
            let name = name.unescape();
            match self.schema.input_field_by_name(ty, &name) {
                Some(id) => match known.iter_mut().find(|(of, _)| *of == id) {
                    Some((_, before)) => *before = value,
                    None => known.push((id, value)),
                },
                None if unknown.len() <= ERRORS_MAX && !unknown.contains(&name) => {
                    unknown.push(name);
                }
                None => {}
            }
        }
        (known, unknown)
    }

    fn unknown_fields(&mut self, value: Node<'_>, names: &[Cow<'_, str>], ty: TypeId) {
        let schema = self.schema;
        for name in names {
            if self.is_over {
                return;
            }
            let fields = schema.types[ty].input_fields.iter();
            let names = fields.map(|id| schema.name(schema.inputs[*id].name));
            let hint = self.did_you_mean(None, name, names);
            let ty = schema.type_name(ty);
            self.error(
                value,
                &format!("Field \"{name}\" is not defined by type \"{ty}\".{hint}"),
            );
        }
    }

    fn one_of(&mut self, value: Node<'_>, given: &[(&'a str, Node<'a>)], ty: TypeId) {
        if given.len() != 1 {
            let ty = self.schema.type_name(ty);
            let problem = format!("Exactly one key must be specified for OneOf type \"{ty}\".");
            self.error(value, &problem);
        }
        if let Some((name, field)) = given.first()
            && field.is_null()
        {
            self.path.push(Step::Field(name));
            self.error(*field, &format!("Field \"{name}\" must be non-null."));
            self.path.pop();
        }
    }

    fn enum_value(&mut self, value: Node<'_>, ty: TypeId) {
        let schema = self.schema;
        let text = value.string();
        if let Some(text) = &text
            && schema.enum_value_by_name(ty, text).is_some()
        {
            return write(value, &mut self.out);
        }
        let text = text.as_deref();
        let found = text.map_or_else(|| inspect(value), str::to_owned);
        let values = schema.types[ty].enum_values.iter();
        let names = values.map(|id| schema.name(schema.enum_values[*id].name));
        let hint = self.did_you_mean(Some("the enum value"), &found, names);
        let ty = schema.type_name(ty);
        let problem = if text.is_some() {
            format!("Value \"{found}\" does not exist in \"{ty}\" enum.{hint}")
        } else {
            format!("Enum \"{ty}\" cannot represent non-string value: {found}.{hint}")
        };
        self.error(value, &problem);
    }

    fn scalar(&mut self, value: Node<'_>, ty: TypeId) {
        let number = value.number();
        let complaint = match (self.schema.type_name(ty), value.kind(), number) {
            ("Int", _, Some(number)) => match integer(number) {
                Some(digits) if digits.parse::<i32>().is_ok() => {
                    return self.out.extend_from_slice(plain(&digits).as_bytes());
                }
                Some(_) => "Int cannot represent non 32-bit signed integer value: ",
                None => "Int cannot represent non-integer value: ",
            },
            ("Int", ..) => "Int cannot represent non-integer value: ",
            ("Float", _, Some(number)) if js_number(number).is_finite() => {
                return self.out.extend_from_slice(number.as_bytes());
            }
            ("Float", ..) => "Float cannot represent non numeric value: ",
            ("String", Kind::String, _)
            | ("Boolean", Kind::True | Kind::False, _)
            | ("ID", Kind::String, _) => return write(value, &mut self.out),
            ("String", ..) => "String cannot represent a non string value: ",
            ("Boolean", ..) => "Boolean cannot represent a non boolean value: ",
            ("ID", _, Some(number)) => match integer(number) {
                Some(digits) => {
                    self.out.push(b'"');
                    self.out.extend_from_slice(plain(&digits).as_bytes());
                    return self.out.push(b'"');
                }
                None => "ID cannot represent value: ",
            },
            ("ID", ..) => "ID cannot represent value: ",
            // Introspection has no input scalars of its own.
            _ => return write(value, &mut self.out),
        };
        let shown = inspect(value);
        self.error_about(&shown, &format!("{complaint}{shown}"));
    }
}

/// Writes a value as it came: without white space, of members with equal keys the last one, and nothing escaped that need
/// not be. Recursion follows the nesting, which is bounded.
fn write(value: Node<'_>, out: &mut Vec<u8>) {
    let mut separate = false;
    let mut comma = |out: &mut Vec<u8>| {
        if std::mem::replace(&mut separate, true) {
            out.push(b',');
        }
    };
    match value.kind() {
        Kind::Object => {
            out.push(b'{');
            let once = has_equal_keys(value).then(|| last_of_equal_keys(value));
            match once {
                None => value.members().for_each(|(key, value)| {
                    comma(out);
                    write_string(out, &key.unescape());
                    out.push(b':');
                    write(value, out);
                }),
                Some(members) => members.into_iter().for_each(|(key, value)| {
                    comma(out);
                    write_string(out, &key);
                    out.push(b':');
                    write(value, out);
                }),
            }
            out.push(b'}');
        }
        Kind::Array => {
            out.push(b'[');
            for item in value.items() {
                comma(out);
                write(item, out);
            }
            out.push(b']');
        }
        Kind::String if value.raw().contains(&b'\\') => {
            write_string(out, &value.string().unwrap_or_default());
        }
        _ => out.extend_from_slice(value.raw()),
    }
}

/// Most members that are compared with one another.
const COMPARED_MAX: usize = 8;

/// Whether an object has, or may have, several members with the same key.
fn has_equal_keys(object: Node<'_>) -> bool {
    let keys = || object.members().map(|(key, _)| key);
    if keys().nth(COMPARED_MAX).is_some() {
        return true;
    }
    let mut rest = keys();
    while let Some(key) = rest.next() {
        let is_equal = |other| {
            if key.has_escapes() || ogive_json::JsonStr::has_escapes(other) {
                key.unescape() == other.unescape()
            } else {
                key.raw() == other.raw()
            }
        };
        if rest.clone().any(is_equal) {
            return true;
        }
    }
    false
}

/// The members of an object in the order in which their keys come first, with the values that come last.
fn last_of_equal_keys(object: Node<'_>) -> Vec<(Cow<'_, str>, Node<'_>)> {
    let mut members: Vec<(Cow<'_, str>, Node<'_>)> = Vec::new();
    let mut places: FastMap<Cow<'_, str>, usize> = FastMap::default();
    for (key, value) in object.members() {
        let key = key.unescape();
        match places.get(&key) {
            Some(place) => members[*place].1 = value,
            None => {
                places.insert(key.clone(), members.len());
                members.push((key, value));
            }
        }
    }
    members
}

/// The digits of a number without fraction, however it was written; `None` if it has one.
fn integer(text: &str) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return Some(Cow::Borrowed(text));
    }
    let value = js_number(text);
    // All finite doubles print without exponent here, so this is their exact integer value.
    (value.is_finite() && value.fract() == 0.0).then(|| Cow::Owned(format!("{value:.0}")))
}

/// Digits as servers expect them.
fn plain(digits: &str) -> &str {
    match digits {
        "-0" => "0",
        other => other,
    }
}
