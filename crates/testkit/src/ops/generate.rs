//! Generates valid operations over a model's merged schema.
//!
//! Selections are drawn freely, fragments are cut out of inline fragments and spread again elsewhere, and finally
//! what cannot merge is dropped ([`super::conflicts`]), so that key collisions that *can* merge stay.

use super::{Directive, Field, Fragment, Op, Sel, Val, Variable, conflicts};
use crate::{
    graph::{FieldModel, Item, Kind, Model, Ty},
    rng::Rng,
};

/// How large.
#[derive(Clone, Copy, Debug)]
pub struct OpOptions {
    /// Deepest nesting of composite fields.
    pub depth_max: usize,
    /// Most fields drawn.
    pub fields_max: usize,
}

impl Default for OpOptions {
    fn default() -> Self {
        OpOptions {
            depth_max: 6,
            fields_max: 45,
        }
    }
}

/// A valid operation.
pub fn generate(model: &Model, seed: u64, options: &OpOptions) -> Op {
    let model = &model.visible();
    let mut rng = Rng::new(seed);
    let mutation = model.ty("Mutation").is_some() && rng.chance(35);
    let mut draw = Draw {
        model,
        budget: rng.between(3, options.fields_max),
        rng,
        op: Op {
            mutation,
            ..Op::default()
        },
    };
    if draw.rng.chance(40) {
        draw.op.name = Some("Op".to_owned());
    }
    let root = if mutation { "Mutation" } else { "Query" };
    let mut selections = draw.selections(root, options.depth_max);
    if !mutation && draw.rng.chance(8) {
        let extra = draw.introspection();
        let at = draw.rng.below(selections.len() + 1);
        selections.insert(at, extra);
    }
    draw.op.selections = selections;
    draw.outline();
    draw.spread_again();
    if draw.rng.chance(12) {
        draw.op.others = vec!["query Other {\n  __typename\n}".to_owned()];
        if draw.rng.chance(30) {
            draw.op
                .others
                .push("query More {\n  __schema {\n    __typename\n  }\n}".to_owned());
        }
    }
    let mut op = draw.op;
    conflicts::resolve(model, &mut op);
    let mut types = model.types.iter();
    if types.any(|t| model.stands_alone(&t.name)) {
        let root = op.selections.as_mut_slice();
        fill(model, root, if mutation { "Mutation" } else { "Query" });
        for fragment in &mut op.fragments {
            let on = fragment.on.clone();
            fill_one(model, &mut fragment.selections, &on);
        }
    }
    op
}

/// An empty selection is printed with `__typename`, which nobody could tell of a type that stands alone: gives it a
/// field.
fn fill_one(model: &Model, selections: &mut Vec<Sel>, ty: &str) {
    if selections.is_empty() && model.stands_alone(ty) {
        selections.push(Sel::Field(Field {
            alias: Some("filled".to_owned()),
            name: "id".to_owned(),
            ..Field::default()
        }));
    }
    fill(model, selections, ty);
}

fn fill(model: &Model, selections: &mut [Sel], ty: &str) {
    for selection in selections {
        match selection {
            Sel::Field(field) => {
                let row = model.field(ty, &field.name).and_then(FieldModel::merged_ty);
                if let Some(value) = row.filter(|t| model.kind(t.name()).is_composite()) {
                    fill_one(model, &mut field.selections, value.name());
                }
            }
            Sel::Inline { on, selections, .. } => {
                let on = on.clone().unwrap_or_else(|| ty.to_owned());
                fill_one(model, selections, &on);
            }
            Sel::Spread { .. } => {}
        }
    }
}

struct Draw<'m> {
    model: &'m Model,
    rng: Rng,
    op: Op,
    budget: usize,
}

impl Draw<'_> {
    fn selections(&mut self, ty: &str, depth: usize) -> Vec<Sel> {
        let root = ty == "Query" || ty == "Mutation";
        let mut out = Vec::new();
        if self.model.kind(ty).is_abstract() && depth > 0 && self.rng.chance(30) {
            out.extend(self.clash(ty, depth - 1));
        }
        let n = if root {
            self.rng.between(1, 4)
        } else {
            self.rng.between(1, 5)
        };
        for _ in 0..n {
            if self.budget == 0 && !out.is_empty() {
                break;
            }
            let kind = self.model.kind(ty);
            let fragment = match kind {
                Kind::Union => 85,
                Kind::Interface => 45,
                _ => 12,
            };
            // Nobody could say what it is.
            let nameless = self.model.stands_alone(ty);
            if !nameless && self.rng.chance(if root { 3 } else { 10 })
                || (kind == Kind::Union && depth == 0)
            {
                let alias = self.alias(ty, 20);
                out.push(Sel::Field(Field {
                    alias,
                    name: "__typename".to_owned(),
                    directives: self.directives(5),
                    ..Field::default()
                }));
            } else if self.rng.chance(fragment) && depth > 0 {
                let on = self.condition(ty);
                let directives = self.directives(20);
                let selections = self.selections(on.as_deref().unwrap_or(ty), depth - 1);
                out.push(Sel::Inline {
                    on,
                    directives,
                    selections,
                });
            } else if let Some(field) = self.field(ty, depth) {
                // The same field twice in one set must merge.
                if self.rng.chance(6) {
                    out.push(field.clone());
                }
                if let Sel::Field(chosen) = &field
                    && depth > 0
                    && self.rng.chance(60)
                {
                    out.extend(self.beside(ty, &chosen.name.clone(), depth));
                }
                out.push(field);
            }
        }
        out
    }

    /// Objects that the `@requires` of a field goes through, for other fields of theirs.
    fn beside(&mut self, ty: &str, field: &str, depth: usize) -> Vec<Sel> {
        let model = self.model;
        let Some((_, set)) = model.field(ty, field).and_then(FieldModel::requires) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for item in &set.items {
            let Item::Field { name, args, sub } = item else {
                continue;
            };
            let value = model.field(ty, name).and_then(FieldModel::merged_ty);
            if let Some(value) = value.filter(|_| args.is_empty() && !sub.is_empty()) {
                out.push(Sel::Field(Field {
                    alias: self.alias(ty, 20),
                    name: name.clone(),
                    args: Vec::new(),
                    directives: self.directives(8),
                    selections: self.selections(value.name(), depth - 1),
                    composite: true,
                }));
            }
        }
        out
    }

    /// One response key for different fields of two concrete types behind an abstract one.
    fn clash(&mut self, ty: &str, depth: usize) -> Vec<Sel> {
        let model = self.model;
        let types = model.possible(ty);
        let mut pairs = Vec::new();
        for (i, a) in types.iter().enumerate() {
            for b in &types[..i] {
                let fields = |t: &str| model.ty(t).map_or(&[][..], |t| &t.fields);
                for one in fields(a) {
                    for two in fields(b) {
                        let (Some(x), Some(y)) = (one.merged_ty(), two.merged_ty()) else {
                            continue;
                        };
                        let composite = model.kind(x.name()).is_composite();
                        let alike = if composite && model.kind(y.name()).is_composite() {
                            x.to_string().replace(x.name(), "")
                                == y.to_string().replace(y.name(), "")
                        } else {
                            x == y
                        };
                        if one.name != two.name && alike && (depth > 0 || !composite) {
                            pairs.push([(*a, one), (*b, two)]);
                        }
                    }
                }
            }
        }
        let Some(pair) = self.rng.try_pick(&pairs).copied() else {
            return Vec::new();
        };
        let key = ["x", "y", "id"][self.rng.below(3)];
        pair.map(|(on, field)| {
            let value = field.merged_ty().unwrap_or_default();
            let composite = model.kind(value.name()).is_composite();
            let args = self.args(field);
            let selections = if composite {
                self.selections(value.name(), depth - 1)
            } else {
                Vec::new()
            };
            Sel::Inline {
                on: Some(on.to_owned()),
                directives: self.directives(10),
                selections: vec![Sel::Field(Field {
                    alias: Some(key.to_owned()),
                    name: field.name.clone(),
                    args,
                    directives: Vec::new(),
                    selections,
                    composite,
                })],
            }
        })
        .to_vec()
    }

    /// A type condition that can apply within `ty`.
    fn condition(&mut self, ty: &str) -> Option<String> {
        let here = self.model.possible(ty);
        let mut all: Vec<&str> = vec![ty];
        for other in &self.model.types {
            if other.kind.is_composite()
                && !other.is_root()
                && self
                    .model
                    .possible(&other.name)
                    .iter()
                    .any(|p| here.contains(p))
            {
                all.push(&other.name);
                // Concrete types are the interesting ones.
                if other.kind == Kind::Object {
                    all.push(&other.name);
                }
            }
        }
        if self.rng.chance(10) {
            return None;
        }
        self.rng.try_pick(&all).map(|t| (*t).to_owned())
    }

    fn field(&mut self, ty: &str, depth: usize) -> Option<Sel> {
        let model = self.model;
        let fields = &model.ty(ty)?.fields;
        let usable: Vec<&FieldModel> = fields
            .iter()
            .filter(|f| {
                depth > 0
                    || f.merged_ty()
                        .is_some_and(|t| !model.kind(t.name()).is_composite())
            })
            .collect();
        let computed = |f: &&FieldModel| f.requires().is_some();
        let computed: Vec<&FieldModel> = usable.iter().copied().filter(computed).collect();
        let field = match self.rng.try_pick(&computed).copied() {
            Some(field) if self.rng.chance(25) => field,
            _ => *self.rng.try_pick(&usable)?,
        };
        self.budget = self.budget.saturating_sub(1);
        let value = field.merged_ty()?;
        let composite = self.model.kind(value.name()).is_composite();
        // Concrete types behind an abstract one like to use one key for different fields.
        let alias =
            if model.ty(ty).is_some_and(|t| !t.interfaces().is_empty()) && self.rng.chance(25) {
                Some(["x", "y"][self.rng.below(2)].to_owned())
            } else {
                self.alias(ty, 22)
            };
        let args = self.args(field);
        let directives = self.directives(8);
        let selections = if composite {
            self.selections(value.name(), depth - 1)
        } else {
            Vec::new()
        };
        Some(Sel::Field(Field {
            alias,
            name: field.name.clone(),
            args,
            directives,
            selections,
            composite,
        }))
    }

    /// An alias that likes to be the name of another field, above all of keys.
    fn alias(&mut self, ty: &str, percent: usize) -> Option<String> {
        if !self.rng.chance(percent) {
            return None;
        }
        let mut pool: Vec<String> = [
            "a",
            "b",
            "id",
            "upc",
            "owner",
            "_0",
            "_e0",
            "f0",
            "_entities",
        ]
        .map(str::to_owned)
        .to_vec();
        if let Some(row) = self.model.ty(ty) {
            pool.extend(row.fields.iter().map(|f| f.name.clone()));
        }
        self.rng.try_pick(&pool).cloned()
    }

    fn args(&mut self, field: &FieldModel) -> Vec<(String, Val)> {
        let mut out = Vec::new();
        for arg in &field.args {
            let required = arg.ty.is_non_null() && arg.default.is_none();
            if required || self.rng.chance(65) {
                let value = self.value(&arg.ty, arg.default.is_some(), true, 3);
                out.push((arg.name.clone(), value));
            }
        }
        if self.rng.chance(20) {
            out.reverse();
        }
        out
    }

    /// A value for an input position. `optional`: the position has a default; `absent_ok`: a variable there may be
    /// left out.
    fn value(&mut self, ty: &Ty, optional: bool, absent_ok: bool, depth: usize) -> Val {
        if self.rng.chance(30) {
            return self.variable(ty, optional, absent_ok);
        }
        if !ty.is_non_null() && self.rng.chance(12) {
            return Val::Text("null".to_owned());
        }
        match ty.nullable() {
            Ty::List(inner) => {
                if self.rng.chance(10) && !inner.is_list() {
                    // A single item stands for a list of one.
                    return self.literal(inner, depth);
                }
                let n = self.rng.below(3);
                Val::List(
                    (0..n)
                        .map(|_| self.value(inner, false, false, depth.saturating_sub(1)))
                        .collect(),
                )
            }
            _ => self.literal(ty, depth),
        }
    }

    fn literal(&mut self, ty: &Ty, depth: usize) -> Val {
        let model = self.model;
        let name = ty.name();
        if let Some(row) = model.ty(name)
            && row.kind == Kind::Input
        {
            let mut fields = Vec::new();
            for input in &row.inputs {
                let required = input.ty.is_non_null() && input.default.is_none();
                if required || (depth > 0 && self.rng.chance(60)) {
                    let value = self.value(
                        &input.ty,
                        input.default.is_some(),
                        !input.ty.is_non_null(),
                        depth.saturating_sub(1),
                    );
                    fields.push((input.name.clone(), value));
                }
            }
            return Val::Object(fields);
        }
        if ty.is_list() {
            return Val::List(Vec::new());
        }
        Val::Text(self.leaf(name, false))
    }

    /// A leaf value as GraphQL or JSON text.
    fn leaf(&mut self, name: &str, json: bool) -> String {
        match name {
            "Int" => ["0", "-3", "42", "2147483647", "-2147483648"][self.rng.below(5)].to_owned(),
            "Float" => ["0", "1.5", "-2.25e3", "10", "0.1"][self.rng.below(5)].to_owned(),
            "Boolean" => ["true", "false"][self.rng.below(2)].to_owned(),
            "String" => [
                "\"\"",
                "\"plain\"",
                "\"tab\\tquote\\\" back\\\\\"",
                "\"\\u00e9 \\u2603\"",
                "\"caf\u{e9} \u{1f600}\"",
            ][self.rng.below(5)]
            .to_owned(),
            "ID" => ["\"1\"", "7", "\"x-9\""][self.rng.below(3)].to_owned(),
            _ => match self.model.ty(name) {
                Some(row) if row.kind == Kind::Enum => {
                    let names: Vec<&str> = row.members.iter().map(|(m, _)| m.as_str()).collect();
                    let value = self.rng.try_pick(&names).copied().unwrap_or("RED");
                    if json {
                        format!("\"{value}\"")
                    } else {
                        value.to_owned()
                    }
                }
                _ if json => ["{\"k\":[1,null,1.50]}", "\"blob\"", "12345678901234567890"]
                    [self.rng.below(3)]
                .to_owned(),
                _ => ["{k: [1, null, 1.50]}", "\"blob\"", "1234567890123"][self.rng.below(3)]
                    .to_owned(),
            },
        }
    }

    fn json(&mut self, ty: &Ty, depth: usize) -> String {
        if !ty.is_non_null() && self.rng.chance(12) {
            return "null".to_owned();
        }
        match ty.nullable() {
            Ty::List(inner) => {
                let n = self.rng.below(3);
                let items: Vec<String> = (0..n)
                    .map(|_| self.json(inner, depth.saturating_sub(1)))
                    .collect();
                format!("[{}]", items.join(","))
            }
            _ => {
                let model = self.model;
                match model.ty(ty.name()) {
                    Some(row) if row.kind == Kind::Input => {
                        let mut members = Vec::new();
                        for input in &row.inputs {
                            let required = input.ty.is_non_null() && input.default.is_none();
                            if required || (depth > 0 && self.rng.chance(60)) {
                                let value = self.json(&input.ty, depth.saturating_sub(1));
                                members.push(format!("\"{}\":{value}", input.name));
                            }
                        }
                        format!("{{{}}}", members.join(","))
                    }
                    _ => self.leaf(ty.name(), true),
                }
            }
        }
    }

    fn variable(&mut self, ty: &Ty, optional: bool, absent_ok: bool) -> Val {
        // Reuse a variable of the same type where its value fits any position.
        let text = ty.to_string();
        let reusable: Vec<usize> = (0..self.op.variables.len())
            .filter(|i| {
                let v = &self.op.variables[*i];
                v.ty == text && v.value.as_deref().is_some_and(|value| value != "null")
            })
            .collect();
        if self.rng.chance(40)
            && let Some(i) = self.rng.try_pick(&reusable)
        {
            return Val::Var(*i);
        }
        // A stricter type is allowed, a looser one only where the position has a default and a value is given.
        let declared = if self.rng.chance(25) {
            ty.clone().non_null()
        } else if ty.is_non_null() && optional && self.rng.chance(50) {
            ty.nullable().clone()
        } else {
            ty.clone()
        };
        let default = if !declared.is_non_null() && self.rng.chance(35) {
            let value = self.constant(&declared.clone().non_null(), 2);
            Some(value)
        } else {
            None
        };
        let loose = ty.is_non_null() && !declared.is_non_null();
        let absent = !declared.is_non_null()
            && self.rng.chance(30)
            && (default.is_some() || (absent_ok && (!ty.is_non_null() || optional)));
        let value = if absent {
            None
        } else {
            // Null may not reach a non-null position.
            let text = if loose {
                self.json(&declared.clone().non_null(), 2)
            } else {
                self.json(&declared, 2)
            };
            Some(text)
        };
        self.op.variables.push(Variable {
            name: format!("v{}", self.op.variables.len()),
            ty: declared.to_string(),
            default,
            value,
        });
        Val::Var(self.op.variables.len() - 1)
    }

    /// A literal without variables, as GraphQL text.
    fn constant(&mut self, ty: &Ty, depth: usize) -> String {
        if !ty.is_non_null() && self.rng.chance(12) {
            return "null".to_owned();
        }
        match ty.nullable() {
            Ty::List(inner) => {
                let n = self.rng.below(3);
                let items: Vec<String> = (0..n).map(|_| self.constant(inner, depth)).collect();
                format!("[{}]", items.join(", "))
            }
            _ => {
                let model = self.model;
                match model.ty(ty.name()) {
                    Some(row) if row.kind == Kind::Input => {
                        let mut fields = Vec::new();
                        for input in &row.inputs {
                            let required = input.ty.is_non_null() && input.default.is_none();
                            if required || (depth > 0 && self.rng.chance(50)) {
                                let value = self.constant(&input.ty, depth.saturating_sub(1));
                                fields.push(format!("{}: {value}", input.name));
                            }
                        }
                        format!("{{{}}}", fields.join(", "))
                    }
                    _ => self.leaf(ty.name(), false),
                }
            }
        }
    }

    fn directives(&mut self, percent: usize) -> Vec<Directive> {
        let mut out = Vec::new();
        if self.rng.chance(percent) {
            let skip = self.rng.chance(50);
            let first = self.directive(skip);
            out.push(first);
            if self.rng.chance(12) {
                let second = self.directive(!skip);
                out.push(second);
            }
        }
        out
    }

    fn directive(&mut self, skip: bool) -> Directive {
        let condition = if self.rng.chance(25) {
            // Mostly literals that keep the selection.
            Val::Text((self.rng.chance(70) != skip).to_string())
        } else {
            self.boolean()
        };
        Directive::Condition { skip, condition }
    }

    /// A boolean variable; few of them, so that they are correlated across the operation.
    fn boolean(&mut self) -> Val {
        let number = self.rng.below(3);
        let name = format!("c{number}");
        if let Some(i) = self.op.variables.iter().position(|v| v.name == name) {
            return Val::Var(i);
        }
        let value = self.rng.chance(60);
        let (default, sent) = if self.rng.chance(25) {
            (Some(value.to_string()), None)
        } else {
            (None, Some(value.to_string()))
        };
        self.op.variables.push(Variable {
            name,
            ty: "Boolean!".to_owned(),
            default,
            value: sent,
        });
        Val::Var(self.op.variables.len() - 1)
    }

    fn introspection(&mut self) -> Sel {
        let leaf = |name: &str| {
            Sel::Field(Field {
                name: name.to_owned(),
                ..Field::default()
            })
        };
        let nested = |name: &str, selections: Vec<Sel>| {
            Sel::Field(Field {
                name: name.to_owned(),
                selections,
                composite: true,
                ..Field::default()
            })
        };
        // Of an interface that nothing implements the monolith has an object type.
        let mut types = self.model.types.iter();
        let alike = !types.any(|t| self.model.stands_alone(&t.name));
        let kind = || alike.then(|| leaf("kind"));
        let of = |more: Sel| kind().into_iter().chain([leaf("name"), more]).collect();
        let of_type = nested(
            "type",
            of(nested("ofType", of(nested("ofType", vec![leaf("name")])))),
        );
        let fields = nested(
            "fields",
            vec![
                leaf("name"),
                nested(
                    "args",
                    vec![leaf("name"), leaf("defaultValue"), of_type.clone()],
                ),
                of_type.clone(),
            ],
        );
        let mut details = vec![
            leaf("__typename"),
            leaf("name"),
            fields,
            nested("inputFields", vec![leaf("name"), of_type]),
            nested("enumValues", vec![leaf("name")]),
        ];
        if alike {
            details.push(leaf("kind"));
            details.push(nested("interfaces", vec![leaf("name")]));
            details.push(nested("possibleTypes", vec![leaf("name")]));
        }
        if self.rng.chance(50) {
            let names: Vec<&str> = self.model.types.iter().map(|t| t.name.as_str()).collect();
            let name = self.rng.try_pick(&names).copied().unwrap_or("Query");
            return Sel::Field(Field {
                alias: Some("meta".to_owned()),
                name: "__type".to_owned(),
                args: vec![("name".to_owned(), Val::Text(format!("\"{name}\"")))],
                selections: details,
                composite: true,
                ..Field::default()
            });
        }
        nested(
            "__schema",
            vec![
                nested("queryType", vec![leaf("name")]),
                nested("types", details),
                nested("directives", vec![leaf("name"), leaf("locations")]),
            ],
        )
    }

    /// Turns some inline fragments into named ones, inner ones first.
    fn outline(&mut self) {
        let mut selections = std::mem::take(&mut self.op.selections);
        self.outline_in(&mut selections);
        self.op.selections = selections;
    }

    fn outline_in(&mut self, set: &mut [Sel]) {
        for selection in set {
            match selection {
                Sel::Field(field) => self.outline_in(&mut field.selections),
                Sel::Inline { selections, .. } => self.outline_in(selections),
                Sel::Spread { .. } => {}
            }
            if let Sel::Inline {
                on: Some(on),
                directives,
                selections,
            } = selection
                && self.rng.chance(40)
            {
                self.op.fragments.push(Fragment {
                    name: format!("F{}", self.op.fragments.len()),
                    on: std::mem::take(on),
                    selections: std::mem::take(selections),
                });
                *selection = Sel::Spread {
                    fragment: self.op.fragments.len() - 1,
                    directives: std::mem::take(directives),
                };
            }
        }
    }

    /// Spreads named fragments once more at other places where they can apply.
    fn spread_again(&mut self) {
        let count = self.op.fragments.len();
        if count == 0 {
            return;
        }
        let root = if self.op.mutation {
            "Mutation"
        } else {
            "Query"
        };
        let mut selections = std::mem::take(&mut self.op.selections);
        self.spread_in(&mut selections, root, count);
        self.op.selections = selections;
        for i in 0..count {
            let on = self.op.fragments[i].on.clone();
            let mut selections = std::mem::take(&mut self.op.fragments[i].selections);
            self.spread_in(&mut selections, &on, i);
            self.op.fragments[i].selections = selections;
        }
    }

    fn spread_in(&mut self, set: &mut Vec<Sel>, ty: &str, below: usize) {
        for selection in set.iter_mut() {
            match selection {
                Sel::Field(field) if field.composite && !field.name.starts_with("__") => {
                    if let Some(value) = self
                        .model
                        .field(ty, &field.name)
                        .and_then(FieldModel::merged_ty)
                    {
                        self.spread_in(&mut field.selections, value.name(), below);
                    }
                }
                Sel::Inline { on, selections, .. } => {
                    let on = on.clone().unwrap_or_else(|| ty.to_owned());
                    self.spread_in(selections, &on, below);
                }
                _ => {}
            }
        }
        if below > 0 && self.rng.chance(10) {
            let fragment = self.rng.below(below);
            let here = self.model.possible(ty);
            let applies = self
                .model
                .possible(&self.op.fragments[fragment].on)
                .iter()
                .any(|p| here.contains(p));
            if applies {
                let directives = self.directives(20);
                let at = self.rng.below(set.len() + 1);
                set.insert(
                    at,
                    Sel::Spread {
                        fragment,
                        directives,
                    },
                );
            }
        }
    }
}
