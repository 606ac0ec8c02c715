//! Variables (specification 5.8): unique, of input types, defined, used, and allowed where they are used.

use ogive_base::{BitSet, FastMap, FastSet, Span};
use ogive_schema::{Type, Wrapping};
use ogive_syntax::ast::{List, OperationDefinition, ValueKind, VariableDefinition};

use super::context::{Context, Position, duplicates};

/// Most variable usages and fragment spreads looked at, counted per operation that reaches them.
const USAGE_STEPS_MAX: u32 = 1_000_000;

/// A variable somewhere in a definition.
pub(super) struct Usage<'a> {
    /// Without `$`.
    pub(super) name: &'a str,
    /// With `$`.
    pub(super) span: Span,
    /// What is expected there.
    pub(super) position: Position,
}

/// An operation and the variables it uses itself.
pub(super) struct Scope<'a> {
    pub(super) operation: &'a OperationDefinition,
    pub(super) usages: Vec<Usage<'a>>,
    /// How many violations had been found when the operation ended.
    pub(super) place: usize,
}

/// Variable uniqueness (5.8.1).
pub(super) fn unique(cx: &mut Context<'_>, variables: List<VariableDefinition>) {
    let doc = cx.doc;
    let names = doc[variables]
        .iter()
        .map(|v| (doc.name(v.name), v.name.span()));
    for (name, places) in duplicates(names) {
        cx.report(&places, |_| {
            format!("There can be only one variable named \"${name}\".")
        });
    }
}

/// Variables are input types (5.8.2).
pub(super) fn input_type(cx: &mut Context<'_>, variable: &VariableDefinition) {
    if let Some(ty) = cx.type_ref(&variable.ty)
        && !cx.schema.types[ty.id].kind.is_input()
    {
        cx.report(&[variable.ty.span], |cx| {
            let (name, ty) = (cx.text(variable.name), cx.display(ty));
            format!("Variable \"${name}\" cannot be non-input type \"{ty}\".")
        });
    }
}

/// The rules that look at an operation together with all fragments it reaches. Puts their violations where each
/// operation ended.
pub(super) fn check<'a>(
    cx: &mut Context<'a>,
    scopes: &[Scope<'a>],
    fragment_usages: &[Vec<Usage<'a>>],
) {
    let mut earlier = std::mem::take(&mut cx.out).into_iter();
    let mut taken = 0;
    let mut steps = 0;
    for scope in scopes {
        cx.out.extend(earlier.by_ref().take(scope.place - taken));
        taken = scope.place;
        let spreads = cx.spreads_in(&scope.operation.selection_set);
        let reached = cx.reach(&spreads, &mut BitSet::new(), &mut steps);
        let mut usages: Vec<&Usage<'a>> = scope.usages.iter().collect();
        for fragment in reached {
            steps = steps.saturating_add(fragment_usages[fragment].len() as u32);
            usages.extend(&fragment_usages[fragment]);
        }
        if steps > USAGE_STEPS_MAX {
            let refusal = cx.too_complex(
                scope.operation.span,
                format!("Checking variables takes more than {USAGE_STEPS_MAX} steps."),
            );
            cx.out.push(refusal);
            break;
        }
        operation(cx, scope.operation, &usages);
    }
    cx.out.extend(earlier);
}

fn operation<'a>(cx: &mut Context<'a>, operation: &OperationDefinition, usages: &[&Usage<'a>]) {
    let doc = cx.doc;
    let variables = &doc[operation.variables];
    let operation_name = operation.name.map(|name| doc.name(name));
    // Of several with one name the last counts.
    let defined: FastMap<&str, &VariableDefinition> =
        variables.iter().map(|v| (doc.name(v.name), v)).collect();
    for usage in usages {
        let name = usage.name;
        if !defined.contains_key(name) {
            cx.report(&[usage.span, operation.span], |_| match operation_name {
                Some(operation) => {
                    format!("Variable \"${name}\" is not defined by operation \"{operation}\".")
                }
                None => format!("Variable \"${name}\" is not defined."),
            });
        }
    }
    let used: FastSet<&str> = usages.iter().map(|usage| usage.name).collect();
    for variable in variables {
        let name = doc.name(variable.name);
        if !used.contains(name) {
            cx.report(&[variable.span], |_| match operation_name {
                Some(operation) => {
                    format!("Variable \"${name}\" is never used in operation \"{operation}\".")
                }
                None => format!("Variable \"${name}\" is never used."),
            });
        }
    }
    for usage in usages {
        if let Some(variable) = defined.get(usage.name) {
            allowed(cx, variable, usage);
        }
    }
}

/// All variable usages are allowed (5.8.5).
fn allowed(cx: &mut Context<'_>, variable: &VariableDefinition, usage: &Usage<'_>) {
    let (Some(ty), Some(expected)) = (cx.type_ref(&variable.ty), usage.position.ty) else {
        return;
    };
    let has_default = variable
        .default
        .is_some_and(|value| !matches!(value.kind, ValueKind::Null));
    let name = usage.name;
    if !fits(ty, expected, has_default || usage.position.has_default) {
        cx.report(&[variable.span, usage.span], |cx| {
            let (ty, expected) = (cx.display(ty), cx.display(expected));
            format!("Variable \"${name}\" of type \"{ty}\" used in position expecting type \"{expected}\".")
        });
    }
    if let Some(object) = usage.position.object
        && cx.schema.types[object].one_of
        && !ty.wrapping.is_non_null()
    {
        cx.report(&[variable.span, usage.span], |cx| {
            let (ty, object) = (cx.display(ty), cx.schema.type_name(object));
            format!(
                "Variable \"${name}\" is of type \"{ty}\" but must be non-nullable to be used for OneOf Input Object \"{object}\"."
            )
        });
    }
}

/// `IsVariableUsageAllowed`.
fn fits(variable: Type, place: Type, has_default: bool) -> bool {
    let mut wanted = place.wrapping;
    if wanted.is_non_null() && !variable.wrapping.is_non_null() {
        if !has_default {
            return false;
        }
        wanted = wanted.nullable();
    }
    variable.id == place.id && is_subtype(variable.wrapping, wanted)
}

/// `AreTypesCompatible`: as many lists, and non-null wherever that is wanted.
fn is_subtype(given: Wrapping, wanted: Wrapping) -> bool {
    given.lists() == wanted.lists()
        && (0..=wanted.lists())
            .all(|layer| given.layer_is_non_null(layer) || !wanted.layer_is_non_null(layer))
}
