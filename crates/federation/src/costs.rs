//! What a supergraph says about how much there is and what it costs: `@listSize` and `@cost`.
//!
//! These are estimates. They decide which of several right plans is better and what an operation is charged, never
//! whether an answer is right, so what makes no sense is left out instead of refused.

use ogive_base::{FastMap, Symbol};
use ogive_schema::{
    AppliedDirective, ConstValue, FieldDef, FieldId, InputId, Schema, TypeId, TypeKind,
};

use crate::{Links, applied::applied, vocabulary::Spec};

/// Most paths of one `sizedFields`, and most names of one path.
const PATHS_MAX: usize = 64;
const PATH_NAMES_MAX: usize = 16;

/// Most `@listSize` of one field.
const SIZES_MAX: usize = 16;

/// How long a list is, as one `@listSize` says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListSize {
    /// `assumedSize`: its length if no argument says it.
    pub assumed: Option<u32>,
    /// `slicingArguments`: what says it; the largest one counts.
    pub slicing: Vec<SlicingArgument>,
    /// `sizedFields`: the lists it is about are those below the field, at these paths; empty: the field itself.
    pub sized: Vec<Vec<Symbol>>,
    /// `requireOneSlicingArgument`: one of the slicing arguments has to be given, and only one.
    pub exactly_one: bool,
}

/// A number, or a list by its length, that says how many items a field returns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlicingArgument {
    /// The argument of the field.
    pub input: InputId,
    /// Fields of input objects below it; empty: the argument itself.
    pub path: Vec<InputId>,
}

/// Everything about sizes and costs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Costs {
    /// By field with `@listSize`, of which there may be several.
    pub list_sizes: FastMap<FieldId, Vec<ListSize>>,
    /// `@cost` of a field.
    pub fields: FastMap<FieldId, u32>,
    /// `@cost` of a type; of an abstract type without one: the largest of its objects, if one of them has a weight.
    pub types: FastMap<TypeId, u32>,
    /// `@cost` of an argument or an input field.
    pub inputs: FastMap<InputId, u32>,
}

impl Costs {
    /// `@cost` of a field, else of the type it returns; absent: the usual.
    pub fn of_field(&self, schema: &Schema, id: FieldId) -> Option<u32> {
        let of_type = || self.types.get(&schema.fields[id].ty.id);
        self.fields.get(&id).or_else(of_type).copied()
    }

    /// `@cost` of a type, else the usual: 1 for objects and input objects, 0 for leaves.
    pub fn of_type(&self, schema: &Schema, id: TypeId) -> u32 {
        let usual = u32::from(!schema.types[id].kind.is_leaf());
        self.types.get(&id).copied().unwrap_or(usual)
    }
}

/// Reads both directives.
pub(crate) fn read_costs(schema: &Schema, links: &Links) -> Costs {
    let symbol = |element: &str| schema.names.get(&links.directive(Spec::Cost, element)?);
    let (size, cost) = (symbol("listSize"), symbol("cost"));
    let mut costs = Costs::default();
    if size.is_none() && cost.is_none() {
        return costs;
    }
    let name = schema.names.get("weight");
    let weight = |directives: &[AppliedDirective]| {
        let applied = applied(directives, cost).next()?;
        number(applied.arg(name?)?)
    };
    for (id, ty) in schema.types.iter() {
        if let Some(weight) = weight(&ty.directives) {
            costs.types.insert(id, weight);
        }
    }
    for (id, input) in schema.inputs.iter() {
        if let Some(weight) = weight(&input.directives) {
            costs.inputs.insert(id, weight);
        }
    }
    for (id, field) in schema.fields.iter() {
        if let Some(weight) = weight(&field.directives) {
            costs.fields.insert(id, weight);
        }
        let own = applied(&field.directives, size);
        // What an interface says of a field holds for its objects.
        let interfaces = schema.types[field.parent].interfaces.iter();
        let above = interfaces.filter_map(|of| schema.fields_by_name.get(&(*of, field.name)));
        let above = above.flat_map(|id| applied(&schema.fields[*id].directives, size));
        let sizes = own.chain(above).take(SIZES_MAX);
        let sizes: Vec<ListSize> = sizes.map(|one| list_size(schema, field, one)).collect();
        if !sizes.is_empty() {
            costs.list_sizes.insert(id, sizes);
        }
    }
    abstract_types(schema, &mut costs);
    costs
}

/// Whoever asks for an interface or a union pays for the most expensive of its objects.
fn abstract_types(schema: &Schema, costs: &mut Costs) {
    if costs.types.is_empty() {
        return;
    }
    for (id, ty) in schema.types.iter().filter(|(_, t)| t.kind.is_abstract()) {
        if costs.types.contains_key(&id) {
            continue;
        }
        let objects = ty.possible.iter().map(TypeId);
        let (mut most, mut is_said) = (0, false);
        for object in objects {
            is_said |= costs.types.contains_key(&object);
            most = most.max(costs.of_type(schema, object));
        }
        if is_said {
            costs.types.insert(id, most);
        }
    }
}

fn list_size(schema: &Schema, field: &FieldDef, applied: &AppliedDirective) -> ListSize {
    let arg = |name: &str| applied.arg(schema.names.get(name)?);
    let texts = |name: &str| -> Vec<&str> {
        let texts = match arg(name) {
            Some(ConstValue::List(texts)) => texts.as_slice(),
            // One value is a list of one.
            Some(text) => std::slice::from_ref(text),
            None => &[],
        };
        texts.iter().filter_map(ConstValue::as_str).collect()
    };
    let slicing = texts("slicingArguments").into_iter();
    let mut sized = Vec::new();
    for text in texts("sizedFields") {
        for path in field_paths(text) {
            let names = path.iter().map(|name| schema.names.get(name));
            // A name that the schema does not have is no field.
            if let Some(names) = names.collect::<Option<Vec<Symbol>>>()
                && sized.len() < PATHS_MAX
            {
                sized.push(names);
            }
        }
    }
    let slicing: Vec<SlicingArgument> = slicing
        .filter_map(|path| slicing_argument(schema, &field.args, path))
        .take(PATHS_MAX)
        .collect();
    let one = arg("requireOneSlicingArgument").and_then(ConstValue::as_bool);
    ListSize {
        assumed: arg("assumedSize").and_then(number),
        exactly_one: one.unwrap_or(true) && !slicing.is_empty(),
        slicing,
        sized,
    }
}

/// The argument that `first`, or `input.page.first`, means among `args`; `None` if there is none.
pub fn slicing_argument(schema: &Schema, args: &[InputId], path: &str) -> Option<SlicingArgument> {
    let mut names = path.split('.');
    let input = schema.arg_by_name(args, names.next()?)?;
    let mut found = SlicingArgument {
        input,
        path: Vec::new(),
    };
    let mut last = input;
    for name in names {
        let ty = schema.inputs[last].ty;
        let is_object = schema.types[ty.id].kind == TypeKind::InputObject;
        if !is_object || ty.wrapping.is_list() || found.path.len() >= PATH_NAMES_MAX {
            return None;
        }
        last = schema.input_field_by_name(ty.id, name)?;
        found.path.push(last);
    }
    Some(found)
}

/// The paths to the last names of `results { page more }`, or of `results.page`; nothing if it is neither.
pub fn field_paths(text: &str) -> Vec<Vec<&str>> {
    let mut paths: Vec<Vec<&str>> = Vec::new();
    // Names around the place, and how many names each opened brace stands for.
    let mut above: Vec<&str> = Vec::new();
    let mut opened: Vec<usize> = Vec::new();
    // The names of the field that was read last.
    let mut last: Vec<&str> = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '{' | '}' | ',' => 1,
            _ => rest
                .find(|c: char| c.is_whitespace() || "{},".contains(c))
                .unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        rest = after.trim_start();
        if token != "{" && !last.is_empty() {
            paths.push([&above[..], &last[..]].concat());
            last.clear();
        }
        match token {
            "{" => {
                if last.is_empty() {
                    return Vec::new();
                }
                opened.push(last.len());
                above.append(&mut last);
            }
            "}" => match opened.pop() {
                Some(names) => above.truncate(above.len() - names),
                None => return Vec::new(),
            },
            "," => {}
            names => last.extend(names.split('.')),
        }
        if above.len() + last.len() > PATH_NAMES_MAX || paths.len() >= PATHS_MAX {
            return Vec::new();
        }
    }
    if !last.is_empty() {
        paths.push([&above[..], &last[..]].concat());
    }
    paths
}

/// A whole number; weights were strings in early versions of the specification, and negative ones count nothing.
fn number(value: &ConstValue) -> Option<u32> {
    match value {
        ConstValue::Int(text) | ConstValue::String(text) => {
            let number: i64 = text.trim().parse().ok()?;
            Some(number.clamp(0, i64::from(u32::MAX)) as u32)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::field_paths;

    #[test]
    fn sized_fields_may_be_nested() {
        let of = |text| -> Vec<String> { field_paths(text).iter().map(|p| p.join("/")).collect() };
        assert_eq!(of("edges"), ["edges"]);
        assert_eq!(of("results { page }"), ["results/page"]);
        assert_eq!(of("a{b c{d,e}}f"), ["a/b", "a/c/d", "a/c/e", "f"]);
        assert_eq!(of("results.page"), ["results/page"]);
        assert!(of("}").is_empty());
        assert!(of("{ a }").is_empty());
        assert!(of(&"a{".repeat(100)).is_empty());
    }
}
