//! Applied directives (specification 5.7 and the rules on type system directives in 3.13) and directive definitions
//! that lead back to themselves.

use ogive_base::{BitSet, FastMap, FastSet, Symbol};
use ogive_syntax::ast::Directive;

use super::{Args, Index, is_strict, values};
use crate::{
    builder::{Builder, DirectiveUse},
    codes,
    report::Place,
    suggest,
    types::*,
};

pub(super) fn check_uses(builder: &mut Builder<'_>, index: &Index) {
    let uses = std::mem::take(&mut builder.directive_uses);
    let mut args: FastMap<DirectiveId, Args> = FastMap::default();
    let mut at_owner: FastSet<(TypeId, DirectiveId)> = FastSet::default();
    let mut here: FastSet<DirectiveId> = FastSet::default();
    for use_ in &uses {
        if builder.report.is_full() {
            break;
        }
        let doc = builder.docs[use_.doc as usize];
        here.clear();
        for directive in &doc[use_.list] {
            let place = Place {
                doc: use_.doc,
                span: directive.span,
            };
            let name = doc.name(directive.name);
            let Some(id) = builder.schema.directive_by_name(name) else {
                let message = format!("Unknown directive \"@{name}\".");
                builder
                    .report
                    .error(codes::UNKNOWN_DIRECTIVE, message, place);
                continue;
            };
            let row = &builder.schema.directive_defs[id];
            if !row.locations.contains(&use_.location) {
                let message = format!(
                    "Directive \"@{name}\" may not be used on {}.",
                    use_.location.as_str()
                );
                builder
                    .report
                    .error(codes::MISPLACED_DIRECTIVE, message, place);
            }
            let is_first = match use_.owner {
                Some(owner) => at_owner.insert((owner, id)),
                None => here.insert(id),
            };
            if !row.repeatable && !is_first {
                let message =
                    format!("The directive \"@{name}\" can only be used once at this location.");
                builder
                    .report
                    .error(codes::REPEATED_DIRECTIVE, message, place);
            }
            let known = args.entry(id).or_insert_with(|| args_of(builder, id));
            check_args(builder, index, use_, directive, known);
        }
    }
    builder.directive_uses = uses;
}

/// The arguments of one directive, those that were lost to an error included.
fn args_of(builder: &Builder<'_>, id: DirectiveId) -> Args {
    let mut args = Args::new(&builder.schema, &builder.schema.directive_defs[id].args);
    let lost = builder.lost_args.iter().filter(|(d, _)| *d == id);
    args.by_name.extend(lost.map(|(_, name)| (*name, None)));
    args
}

fn check_args(
    builder: &mut Builder<'_>,
    index: &Index,
    use_: &DirectiveUse,
    directive: &Directive,
    known: &Args,
) {
    let doc = builder.docs[use_.doc as usize];
    let name = doc.name(directive.name);
    let mut errors: Vec<(String, Place)> = Vec::new();
    let at = |span| Place {
        doc: use_.doc,
        span,
    };
    let mut given: FastSet<&str> = FastSet::default();
    let mut mismatches = Vec::new();
    let strictness = if builder.loose_values {
        values::Strictness::LooseObjects
    } else {
        values::Strictness::Exact
    };
    for argument in &doc[directive.arguments] {
        let schema = &builder.schema;
        let arg = doc.name(argument.name);
        if !given.insert(arg) {
            let message = format!("There can be only one argument named \"{arg}\".");
            errors.push((message, at(argument.name.span())));
        }
        let found = schema
            .names
            .get(arg)
            .and_then(|symbol| known.by_name.get(&symbol));
        let Some(id) = found else {
            let names = names(known, schema);
            let hint = suggest::did_you_mean(None, &suggest::suggestions(arg, names));
            let message = format!("Unknown argument \"{arg}\" on directive \"@{name}\".{hint}");
            errors.push((message, at(argument.name.span())));
            continue;
        };
        values::check_unique(doc, &argument.value, &mut mismatches);
        errors.extend(mismatches.drain(..).map(|m| (m.message, at(m.span))));
        let Some(id) = id else {
            continue;
        };
        let mut ty = schema.inputs[*id].ty;
        // The reason of a deprecation was nullable once.
        if !is_strict(builder) && name == "deprecated" {
            ty.wrapping = ty.wrapping.nullable();
        }
        let value = (&argument.value, ty);
        values::check(schema, index, doc, value, strictness, &mut mismatches);
        errors.extend(mismatches.drain(..).map(|m| {
            let message = format!(
                "Argument \"@{name}({arg}:)\" has invalid value: {}",
                m.message
            );
            (message, at(m.span))
        }));
    }
    for required in &known.required {
        let row = &builder.schema.inputs[*required];
        let arg = builder.schema.name(row.name);
        if !given.contains(arg) {
            let message = format!(
                "Directive \"@{name}\" argument \"{arg}\" of type \"{}\" is required, but it was not provided.",
                builder.schema.display_type(row.ty)
            );
            errors.push((message, at(directive.span)));
        }
    }
    for (message, place) in errors {
        builder
            .report
            .error(codes::INVALID_DIRECTIVE_ARGUMENT, message, place);
    }
}

/// All names of arguments; suggestions rank them.
fn names<'s>(args: &Args, schema: &'s Schema) -> Vec<&'s str> {
    let mut symbols: Vec<Symbol> = args.by_name.keys().copied().collect();
    symbols.sort_unstable();
    symbols.into_iter().map(|s| schema.name(s)).collect()
}

/// A directive definition must not use itself, directly or through the types of its arguments (specification 3.13).
///
/// Directives and input types are nodes; a directive leads to the types of its arguments and the directives on them,
/// a type to the directives on it and its members and to the types of its fields. A directive on a circle is refused.
pub(super) fn check_definitions(builder: &mut Builder<'_>) {
    let schema = &builder.schema;
    // Nodes: directives first, then types.
    let directives = schema.directive_defs.len() as u32;
    let type_node = |id: TypeId| directives + id.0;
    let applied = |list: &[AppliedDirective], out: &mut Vec<u32>| {
        out.extend(
            list.iter()
                .filter_map(|d| schema.directives_by_name.get(&d.name))
                .map(|id| id.0),
        );
    };
    let inputs = |list: &[InputId], out: &mut Vec<u32>| {
        for id in list {
            let row = &schema.inputs[*id];
            applied(&row.directives, out);
            out.push(type_node(row.ty.id));
        }
    };
    let links = |node: u32| {
        let mut out = Vec::new();
        if node < directives {
            inputs(&schema.directive_defs[DirectiveId(node)].args, &mut out);
        } else {
            let row = &schema.types[TypeId(node - directives)];
            if row.kind.is_input() {
                applied(&row.directives, &mut out);
                inputs(&row.input_fields, &mut out);
                for value in &row.enum_values {
                    applied(&schema.enum_values[*value].directives, &mut out);
                }
            }
        }
        out
    };
    for node in on_circles(directives, directives + schema.types.len() as u32, links) {
        let id = DirectiveId(node);
        let message = format!(
            "Directive \"@{}\" cannot be defined in terms of itself.",
            schema.name(schema.directive_defs[id].name)
        );
        let place = builder.directive_places[id];
        builder
            .report
            .error(codes::CIRCULAR_DEFINITION, message, place);
    }
}

/// Those of the first `starts` of `nodes` nodes that lie on a circle. Tarjan's strongly connected components without
/// recursion; linear in nodes and links.
fn on_circles(starts: u32, nodes: u32, links: impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
    struct Open {
        node: u32,
        links: Vec<u32>,
        next: usize,
    }
    let unseen = u32::MAX;
    let mut order = vec![unseen; nodes as usize];
    let mut low = vec![0; nodes as usize];
    let mut component: Vec<u32> = Vec::new();
    let mut in_component = BitSet::new();
    let (mut clock, mut found) = (0, Vec::new());
    for start in 0..starts {
        if order[start as usize] != unseen {
            continue;
        }
        let mut stack: Vec<Open> = Vec::new();
        let mut enter = Some(start);
        loop {
            if let Some(node) = enter.take() {
                order[node as usize] = clock;
                low[node as usize] = clock;
                clock += 1;
                component.push(node);
                in_component.insert(node);
                stack.push(Open {
                    node,
                    links: links(node),
                    next: 0,
                });
            }
            let Some(open) = stack.last_mut() else {
                break;
            };
            let node = open.node as usize;
            if let Some(to) = open.links.get(open.next).copied() {
                open.next += 1;
                if order[to as usize] == unseen {
                    enter = Some(to);
                } else if in_component.contains(to) {
                    low[node] = low[node].min(order[to as usize]);
                }
                continue;
            }
            let is_self_linked = open.links.contains(&open.node);
            stack.pop();
            if let Some(parent) = stack.last() {
                let parent = parent.node as usize;
                low[parent] = low[parent].min(low[node]);
            }
            if low[node] == order[node] {
                let at = component
                    .iter()
                    .rposition(|n| *n as usize == node)
                    .unwrap_or(0);
                let members = component.split_off(at);
                let is_circle = members.len() > 1 || is_self_linked;
                for member in members {
                    in_component.remove(member);
                    if is_circle && member < starts {
                        found.push(member);
                    }
                }
            }
        }
    }
    found
}
