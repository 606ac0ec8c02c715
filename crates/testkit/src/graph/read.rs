//! Subgraph SDL to a model, so that cases can be kept, and written by hand, as what subgraph authors write.
//!
//! Understands `@key`, `@interfaceObject`, `@external`, `@requires`, `@provides`, `@override(from:)` under their plain names; `@shareable`
//! follows from the roles and is ignored. Not a checker: the text is test input.

use ogive_syntax::{
    Document,
    ast::{
        Definition, Directive, FieldDefinition, InputValueDefinition, List, Name, TypeDefinition,
        TypeDefinitionKind, TypeRef, Wrapping,
    },
};

use super::{
    FieldModel, FieldSet, FieldSource, InputModel, KeyModel, Kind, Model, Sub, Ty, TypeModel, clean,
};
use crate::schemas;

/// Reads subgraphs, given as (name, SDL).
pub fn read(subgraphs: &[(String, String)]) -> Result<Model, String> {
    let mut model = Model {
        subgraphs: subgraphs.iter().map(|(n, _)| n.clone()).collect(),
        types: Vec::new(),
        join: 3,
    };
    for (sub, (name, text)) in subgraphs.iter().enumerate() {
        let document = schemas::document(name, text)?;
        let mut reader = Reader {
            document: &document,
            sub,
            model: &mut model,
        };
        for definition in &document.definitions {
            if let Definition::Type(ty) = definition {
                reader.ty(ty)?;
            }
        }
    }
    for ty in &mut model.types {
        settle(&mut ty.inputs, ty.places.keys().copied());
        for field in &mut ty.fields {
            settle(&mut field.args, field.sources.keys().copied());
        }
    }
    clean::clean(&mut model);
    // Roots first, as schemas print them.
    model
        .types
        .sort_by_key(|t| (!t.is_root(), t.name == "Mutation"));
    Ok(model)
}

/// Adds the inputs of one more subgraph: `only` and `loose` collect who has them and who takes null.
fn merge(all: &mut Vec<InputModel>, more: Vec<InputModel>) {
    for input in more {
        match all.iter_mut().find(|i| i.name == input.name) {
            None => all.push(input),
            Some(known) => {
                known.only |= input.only;
                known.loose |= input.loose;
                known.hidden |= input.hidden;
                known.ty = known.ty.narrow(&input.ty);
            }
        }
    }
}

/// What all subgraphs have is no subgraph's own, and what all take null for is nullable.
fn settle(inputs: &mut [InputModel], places: impl Iterator<Item = Sub>) {
    let all = places.fold(0, |set, s| set | 1 << s);
    for input in inputs {
        if input.only == all {
            input.only = 0;
        }
        if !input.ty.is_non_null() {
            input.loose = 0;
        }
    }
}

/// A field in one subgraph.
struct FieldHere {
    name: String,
    args: Vec<InputModel>,
    source: FieldSource,
    /// The subgraph it overrides.
    from: Option<String>,
    /// Whether it is inaccessible.
    hidden: bool,
}

struct Reader<'a> {
    document: &'a Document,
    sub: Sub,
    model: &'a mut Model,
}

impl Reader<'_> {
    fn ty(&mut self, definition: &TypeDefinition) -> Result<(), String> {
        let document = self.document;
        let name = document.name(definition.name);
        let kind = match definition.kind {
            TypeDefinitionKind::Scalar => Kind::Scalar,
            TypeDefinitionKind::Object { .. } => Kind::Object,
            TypeDefinitionKind::Interface { .. } => Kind::Interface,
            TypeDefinitionKind::Union { .. } => Kind::Union,
            TypeDefinitionKind::Enum { .. } => Kind::Enum,
            TypeDefinitionKind::InputObject { .. } => Kind::Input,
        };
        let interface_object = document[definition.directives]
            .iter()
            .any(|d| document.name(d.name) == "interfaceObject");
        let kind = if interface_object {
            Kind::Interface
        } else {
            kind
        };
        if self.model.ty(name).is_none() {
            self.model.types.push(TypeModel::new(name, kind));
        }
        let sub = self.sub;
        let mut keys = Vec::new();
        for directive in &document[definition.directives] {
            if document.name(directive.name) == "key" {
                let fields = self.field_set(directive)?;
                let resolvable = self.argument(directive, "resolvable") != Some("false");
                keys.push(KeyModel { fields, resolvable });
            }
        }
        let mut fields = Vec::new();
        let mut implements = Vec::new();
        let mut members: Vec<&str> = Vec::new();
        let hidden = self.is_hidden(definition.directives);
        let mut hidden_members: Vec<String> = Vec::new();
        let mut inputs = Vec::new();
        match definition.kind {
            TypeDefinitionKind::Scalar => {}
            TypeDefinitionKind::Object {
                interfaces,
                fields: list,
            }
            | TypeDefinitionKind::Interface {
                interfaces,
                fields: list,
            } => {
                implements = self.names(interfaces);
                for field in &document[list] {
                    fields.push(self.field(field)?);
                }
            }
            TypeDefinitionKind::Union { members: list } => {
                members = document[list].iter().map(|n| document.name(*n)).collect();
            }
            TypeDefinitionKind::Enum { values } => {
                members = document[values]
                    .iter()
                    .map(|v| document.name(v.name))
                    .collect();
                hidden_members = document[values]
                    .iter()
                    .filter(|v| self.is_hidden(v.directives))
                    .map(|v| document.name(v.name).to_owned())
                    .collect();
            }
            TypeDefinitionKind::InputObject { fields } => inputs = self.inputs(fields),
        }
        let Some(ty) = self.model.ty_mut(name) else {
            return Ok(());
        };
        let place = ty.places.entry(sub).or_default();
        place.keys.extend(keys);
        place.interface_object |= interface_object;
        place.implements.extend(implements);
        merge(&mut ty.inputs, inputs);
        ty.hidden |= hidden;
        ty.hidden_members.extend(hidden_members);
        for member in members {
            match ty.members.iter_mut().find(|(m, _)| m == member) {
                Some((_, known)) => *known |= 1 << sub,
                None => ty.members.push((member.to_owned(), 1 << sub)),
            }
        }
        self.add_fields(name, fields);
        Ok(())
    }

    /// Adds what this subgraph says of the fields of a type.
    fn add_fields(&mut self, ty: &str, fields: Vec<FieldHere>) {
        let (sub, subgraphs) = (self.sub, self.model.subgraphs.clone());
        let Some(ty) = self.model.ty_mut(ty) else {
            return;
        };
        for here in fields {
            let mut source = here.source;
            source.overrides = match here.from {
                None => None,
                Some(from) => subgraphs.iter().position(|s| *s == from),
            };
            if ty.field(&here.name).is_none() {
                ty.fields.push(FieldModel::new(&here.name));
            }
            if let Some(field) = ty.field_mut(&here.name) {
                merge(&mut field.args, here.args);
                field.hidden |= here.hidden;
                field.sources.insert(sub, source);
            }
        }
    }

    fn field(&self, field: &FieldDefinition) -> Result<FieldHere, String> {
        let mut source = FieldSource::plain(self.type_ref(field.ty));
        let mut from = None;
        for directive in &self.document[field.directives] {
            match self.document.name(directive.name) {
                "external" => source.external = true,
                "requires" => source.requires = Some(self.field_set(directive)?),
                "provides" => source.provides = Some(self.field_set(directive)?),
                "override" => {
                    from = self.string(directive, "from");
                    source.label = self.string(directive, "label");
                }
                _ => {}
            }
        }
        Ok(FieldHere {
            name: self.document.name(field.name).to_owned(),
            args: self.inputs(field.arguments),
            source,
            from,
            hidden: self.is_hidden(field.directives),
        })
    }

    fn inputs(&self, inputs: List<InputValueDefinition>) -> Vec<InputModel> {
        self.document[inputs]
            .iter()
            .map(|input| InputModel {
                only: 1 << self.sub,
                loose: if input.ty.wrapping.is_non_null() {
                    0
                } else {
                    1 << self.sub
                },
                hidden: self.is_hidden(input.directives),
                ..InputModel::plain(
                    self.document.name(input.name),
                    self.type_ref(input.ty),
                    input
                        .default
                        .map(|value| self.document.text(value.span).to_owned()),
                )
            })
            .collect()
    }

    fn type_ref(&self, ty: TypeRef) -> Ty {
        wrap(self.document.name(ty.name), ty.wrapping)
    }

    fn is_hidden(&self, directives: List<Directive>) -> bool {
        self.document[directives]
            .iter()
            .any(|d| self.document.name(d.name) == "inaccessible")
    }

    fn names(&self, names: List<Name>) -> Vec<String> {
        self.document[names]
            .iter()
            .map(|n| self.document.name(*n).to_owned())
            .collect()
    }

    fn argument(&self, directive: &Directive, name: &str) -> Option<&str> {
        self.document[directive.arguments]
            .iter()
            .find(|a| self.document.name(a.name) == name)
            .map(|a| self.document.text(a.value.span))
    }

    fn string(&self, directive: &Directive, name: &str) -> Option<String> {
        self.document[directive.arguments]
            .iter()
            .find(|a| self.document.name(a.name) == name)
            .and_then(|a| a.value.as_string())
            .map(|s| self.document.string_value(s).into_owned())
    }

    fn field_set(&self, directive: &Directive) -> Result<FieldSet, String> {
        let text = self.string(directive, "fields").unwrap_or_default();
        FieldSet::parse(&text).ok_or_else(|| format!("not a field set: {text:?}"))
    }
}

fn wrap(name: &str, wrapping: Wrapping) -> Ty {
    let inner = match wrapping.item() {
        Some(item) => wrap(name, item).list(),
        None => Ty::named(name),
    };
    if wrapping.is_non_null() {
        inner.non_null()
    } else {
        inner
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{
        generate::{GraphOptions, generate},
        print,
    };

    /// The same model in an order that does not depend on who defined what first.
    fn sorted(mut model: Model) -> Model {
        model.types.sort_by(|a, b| a.name.cmp(&b.name));
        for ty in &mut model.types {
            ty.fields.sort_by(|a, b| a.name.cmp(&b.name));
            ty.members.sort();
        }
        model
    }

    #[test]
    fn printed_subgraphs_read_back() {
        for seed in 0..100 {
            let model = generate(seed, &GraphOptions::default());
            let texts: Vec<(String, String)> = (0..model.subgraphs.len())
                .map(|s| (model.subgraphs[s].clone(), print::subgraph_sdl(&model, s)))
                .collect();
            let again = read(&texts).unwrap();
            let mut model = model;
            model.join = 3;
            pretty_eq(&sorted(model), &sorted(again), seed);
        }
    }

    fn pretty_eq(a: &Model, b: &Model, seed: u64) {
        for (a, b) in a.types.iter().zip(&b.types) {
            assert_eq!(a, b, "seed {seed}");
        }
        assert_eq!(a, b, "seed {seed}");
    }
}
