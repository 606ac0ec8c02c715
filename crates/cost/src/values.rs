//! Sizes and costs in values of variables, which are JSON text that was coerced to its type. Nothing is allocated;
//! recursion follows the nesting of values, which coercion bounds.

use ogive_federation::Costs;
use ogive_json::{Kind, ScanError, Scanner};
use ogive_schema::{InputId, Schema, TypeId, TypeKind};

use crate::program::ABSENT;

/// Deeper than coercion lets any value be.
const DEPTH_MAX: u32 = 256;

/// A size as a number of JSON or GraphQL: negative ones are none, and what is beyond all counting is as large as any.
pub(crate) fn number(text: &str) -> Option<u64> {
    let size = text.parse().or_else(|_| match text.parse::<f64>() {
        // Saturates.
        Ok(size) if size >= 0.0 => Ok(size as u64),
        _ => Err(()),
    });
    Some(size.ok()?.min(ABSENT - 1))
}

/// What is known of input types.
pub(crate) struct Inputs<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) costs: &'a Costs,
}

impl Inputs<'_> {
    /// The number at a path, or the length of the list; `None` if there is neither.
    pub(crate) fn size(&self, text: &str, path: &[InputId]) -> Option<u64> {
        let mut scanner = Scanner::with_depth_max(text.as_bytes(), DEPTH_MAX);
        self.size_at(&mut scanner, path).ok().flatten()
    }

    fn size_at(
        &self,
        scanner: &mut Scanner<'_>,
        path: &[InputId],
    ) -> Result<Option<u64>, ScanError> {
        for input in path {
            let name = self.schema.name(self.schema.inputs[*input].name);
            if scanner.peek()? != Kind::Object {
                return Ok(None);
            }
            let mut more = scanner.begin_object()?;
            loop {
                if !more {
                    return Ok(None);
                }
                if scanner.key()?.is(name) {
                    break;
                }
                scanner.skip_value()?;
                more = scanner.next_member()?;
            }
        }
        match scanner.peek()? {
            Kind::Number => {
                let found = scanner.number()?;
                let text = scanner.text().get(found.range).unwrap_or_default();
                Ok(str::from_utf8(text).ok().and_then(number))
            }
            Kind::Array => {
                let mut length = 0;
                let mut more = scanner.begin_array()?;
                while more {
                    scanner.skip_value()?;
                    length += 1;
                    more = scanner.next_item()?;
                }
                Ok(Some(length))
            }
            _ => Ok(None),
        }
    }

    /// What a value costs as the value of an argument or input field of this weight and type.
    pub(crate) fn cost(&self, text: &str, ty: TypeId, weight: Option<u32>) -> u64 {
        let mut scanner = Scanner::with_depth_max(text.as_bytes(), DEPTH_MAX);
        // Coerced values are JSON; what cannot be read costs nothing.
        self.given(&mut scanner, ty, weight).unwrap_or(0)
    }

    fn given(
        &self,
        scanner: &mut Scanner<'_>,
        ty: TypeId,
        weight: Option<u32>,
    ) -> Result<u64, ScanError> {
        let own = match weight {
            Some(_) => 0,
            None => self.costs.of_type(self.schema, ty),
        };
        let rest = self.contents(scanner, ty, u64::from(own))?;
        Ok(u64::from(weight.unwrap_or(0)).saturating_add(rest))
    }

    /// What is in a value, `own` being paid for each object or leaf.
    fn contents(&self, scanner: &mut Scanner<'_>, ty: TypeId, own: u64) -> Result<u64, ScanError> {
        let is_object = self.schema.types[ty].kind == TypeKind::InputObject;
        let mut cost = 0_u64;
        match scanner.peek()? {
            Kind::Null => scanner.null()?,
            Kind::Array if is_object || own > 0 => {
                let mut more = scanner.begin_array()?;
                while more {
                    cost = cost.saturating_add(self.contents(scanner, ty, own)?);
                    more = scanner.next_item()?;
                }
            }
            Kind::Object if is_object => {
                cost = own;
                let fields = &self.schema.types[ty].input_fields;
                // Members come in the order of definition.
                let mut next = fields.iter();
                let mut more = scanner.begin_object()?;
                while more {
                    let key = scanner.key()?;
                    let is =
                        |id: &&InputId| key.is(self.schema.name(self.schema.inputs[**id].name));
                    match next.find(is).or_else(|| fields.iter().find(is)) {
                        Some(id) => {
                            let weight = self.costs.inputs.get(id).copied();
                            let ty = self.schema.inputs[*id].ty.id;
                            cost = cost.saturating_add(self.given(scanner, ty, weight)?);
                        }
                        None => {
                            scanner.skip_value()?;
                        }
                    }
                    more = scanner.next_member()?;
                }
            }
            _ => {
                scanner.skip_value()?;
                cost = own;
            }
        }
        Ok(cost)
    }
}
