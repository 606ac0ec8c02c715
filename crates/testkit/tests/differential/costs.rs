//! What answers cost, counted while they are written, beside a naive reference: the monolith tells of every object what it
//! is, and the operation is expanded in full over the answer. Whole answers, and answers in parts of both forms.
//!
//! `OGIVE_COST_OPERATIONS` sets how many operations to run (default 2,000).

use ogive_execute::incremental::IncrementalForm;
use ogive_schema::{InputId, Schema, TypeId, TypeKind};
use ogive_testkit::{
    differential::Bench,
    graph::{
        generate::{GraphOptions, generate},
        print::advice,
    },
    incremental::Assembled,
    ops::{
        self, Directive, Field, Op, Sel, Val, defer::defer, features::features,
        generate::OpOptions, stream::stream,
    },
    pipeline::{Gateway, Mode, Prepared, labels_are_on},
    rng::mix,
};
use serde_json::{Map, Value as Json};

use super::{PER_GRAPH, number};

/// The key by which the monolith tells what objects are.
const TYPE_KEY: &str = "costs_type";

/// No list of these graphs is longer.
const LIST_SIZE: u32 = 1 << 10;

#[derive(Default, Debug)]
struct Counts {
    whole: u64,
    in_parts: u64,
    cost: u64,
}

#[test]
fn answers_cost_what_a_naive_count_of_them_says() {
    let operations = number("OGIVE_COST_OPERATIONS", 2_000);
    let mut counts = Counts::default();
    for g in 0..operations.div_ceil(PER_GRAPH) {
        let seed = mix(0xc057_u64.wrapping_add(g).wrapping_mul(11)) >> 16;
        let faults = if g % 3 == 0 { 25 } else { 0 };
        let options = GraphOptions {
            uniform: faults > 0,
            through_objects: faults > 0,
            ..GraphOptions::default()
        };
        let model = generate(seed, &options);
        let bench = Bench::with_faults(&model, seed, faults).expect("a graph");
        let gateway = Gateway::new(&bench.schemas, &bench.engines).counting(LIST_SIZE);
        let means = (&bench, &gateway);
        for i in 0..PER_GRAPH.min(operations - g * PER_GRAPH) {
            let seed = mix(seed ^ i);
            let op = ops::generate::generate(&model, seed, &OpOptions::default());
            let mut told = op.clone();
            tell_types(&mut told);
            let checks = [&op, &told].map(|op| whole(means, op, &told, seed, &mut counts));
            for check in checks {
                if let Err(e) = check {
                    panic!(
                        "seed {seed}\n{}\n{}\n{e}",
                        op.document(),
                        op.variables_json()
                    );
                }
            }
            if features(&model, &op).contains("introspection") {
                continue;
            }
            let mut deferred = told.clone();
            defer(&mut deferred, mix(seed ^ 0xdefe));
            if i % 2 == 0 {
                stream(&mut deferred, &model, mix(seed ^ 0x57e4));
            }
            for form in [IncrementalForm::Distinct, IncrementalForm::Repeated] {
                if let Err(e) = in_parts(means, (&told, &deferred), seed, form, &mut counts) {
                    let text = deferred.document();
                    panic!(
                        "{form:?}, seed {seed}\n{text}\n{}\n{e}",
                        op.variables_json()
                    );
                }
            }
        }
    }
    println!("{counts:?}");
    assert!(counts.whole * 2 > operations, "too few were compared");
    assert!(counts.in_parts * 2 > operations, "too few came in parts");
}

fn whole(
    (bench, gateway): (&Bench, &Gateway<'_>),
    op: &Op,
    told: &Op,
    seed: u64,
    counts: &mut Counts,
) -> Result<(), String> {
    let Some(prepared) = planned(gateway.prepare(&op.document(), &op.variables_json(), seed))?
    else {
        return Ok(());
    };
    bench.world.label(labels_are_on(seed));
    let (typed, _) = bench.expected(&told.document(), &told.variables_json())?;
    bench.world.reset();
    bench.world.forget();
    let answer = gateway.execute(&prepared, Mode::by_seed(seed), seed, None)?;
    if bench.world.is_ambiguous() || bench.world.is_disputed() {
        return Ok(());
    }
    let read = |text: &str| serde_json::from_str::<Json>(text).unwrap_or_default();
    let naive = Naive::new(bench, op);
    let expected = naive.response(&read(&typed), &read(&answer.data));
    let found = answer.cost.ok_or("nothing was counted")?;
    if found != expected {
        let data = &answer.data;
        let plan = &answer.plan;
        return Err(format!(
            "{found} instead of {expected}\n{typed}\n{data}\n{plan}"
        ));
    }
    if let Some(estimate) = prepared.estimate
        && estimate < found
    {
        return Err(format!("{found} is more than the estimate {estimate}"));
    }
    counts.whole += 1;
    counts.cost += found;
    Ok(())
}

/// Nothing where no subgraph tells what objects are.
fn planned(prepared: Result<Prepared, String>) -> Result<Option<Prepared>, String> {
    match prepared {
        Ok(prepared) => Ok(Some(prepared)),
        Err(error) if error.starts_with("plan: ") => Ok(None),
        Err(error) => Err(error),
    }
}

fn in_parts(
    (bench, gateway): (&Bench, &Gateway<'_>),
    (told, deferred): (&Op, &Op),
    seed: u64,
    form: IncrementalForm,
    counts: &mut Counts,
) -> Result<(), String> {
    let variables = deferred.variables_json();
    let prepared = gateway.prepare_in_parts(&deferred.document(), &variables, seed);
    let Some(prepared) = planned(prepared)? else {
        return Ok(());
    };
    bench.world.label(labels_are_on(seed));
    let (typed, _) = bench.expected(&told.document(), &told.variables_json())?;
    bench.world.reset();
    bench.world.forget();
    let (payloads, _, found) = gateway.execute_in_parts(&prepared, form, seed)?;
    if bench.world.is_ambiguous() || bench.world.is_disputed() {
        return Ok(());
    }
    let assembled = Assembled::of(&payloads, form)?;
    // What failed may have been counted with a part that never left.
    if !assembled.failed.is_empty() && form == IncrementalForm::Repeated {
        return Ok(());
    }
    let typed: Json = serde_json::from_str(&typed).unwrap_or_default();
    if !covers(&typed, &assembled.data) {
        return Ok(());
    }
    let expected = Naive::new(bench, told).response(&typed, &assembled.data);
    let found = found.ok_or("nothing was counted")?;
    if found != expected {
        let (data, plan) = (&assembled.data, gateway.plan_text(&prepared));
        return Err(format!(
            "{found} instead of {expected}\n{typed}\n{data}\n{payloads:#?}\n{plan}"
        ));
    }
    counts.in_parts += 1;
    Ok(())
}

/// Has every object say what it is.
fn tell_types(op: &mut Op) {
    fn tell(selections: &mut Vec<Sel>) {
        for selection in selections.iter_mut() {
            match selection {
                Sel::Field(field) if field.composite => tell(&mut field.selections),
                Sel::Inline { selections, .. } => tell(selections),
                Sel::Field(_) | Sel::Spread { .. } => {}
            }
        }
        selections.push(Sel::Field(Field {
            alias: Some(TYPE_KEY.to_owned()),
            name: "__typename".to_owned(),
            ..Field::default()
        }));
    }
    tell(&mut op.selections);
    for fragment in &mut op.fragments {
        tell(&mut fragment.selections);
    }
}

/// Expands an operation over its answer.
struct Naive<'a> {
    op: &'a Op,
    values: Map<String, Json>,
    schema: &'a Schema,
}

/// A field of an object, with all of its selections.
struct Collected<'a> {
    field: &'a Field,
    below: Vec<&'a [Sel]>,
}

impl<'a> Naive<'a> {
    fn new(bench: &'a Bench, op: &'a Op) -> Self {
        let values = serde_json::from_str(&op.variables_json()).unwrap_or_default();
        Naive {
            op,
            values,
            schema: &bench.schemas.supergraph.schema,
        }
    }

    fn response(&self, typed: &Json, answer: &Json) -> u64 {
        let base = if self.op.mutation { 10 } else { 0 };
        let (Json::Object(typed), Json::Object(answer)) = (typed, answer) else {
            return base;
        };
        base + self.object(&[&self.op.selections], typed, answer)
    }

    fn object(
        &self,
        selections: &[&'a [Sel]],
        typed: &Map<String, Json>,
        answer: &Map<String, Json>,
    ) -> u64 {
        let ty = typed
            .get(TYPE_KEY)
            .and_then(Json::as_str)
            .unwrap_or_default();
        let mut fields = Vec::new();
        for selections in selections {
            self.collect(ty, selections, &mut fields);
        }
        let mut cost = 0;
        for Collected { field, below } in &fields {
            let (Some(value), Some(typed)) = (answer.get(field.key()), typed.get(field.key()))
            else {
                continue;
            };
            if !field.name.starts_with("__") {
                cost += self.arguments(ty, field);
                cost += self.value(self.item(ty, field), below, typed, value);
            }
        }
        cost
    }

    fn value(&self, item: u64, below: &[&'a [Sel]], typed: &Json, value: &Json) -> u64 {
        match (typed, value) {
            (_, Json::Null) => 0,
            (Json::Array(typed), Json::Array(items)) => {
                let items = typed.iter().zip(items);
                let costs = items.map(|(typed, value)| self.value(item, below, typed, value));
                costs.sum()
            }
            (Json::Object(typed), Json::Object(value)) if !below.is_empty() => {
                item + self.object(below, typed, value)
            }
            _ => item,
        }
    }

    /// Execution's own way (specification 6.3.2).
    fn collect(&self, ty: &str, selections: &'a [Sel], out: &mut Vec<Collected<'a>>) {
        for selection in selections {
            match selection {
                Sel::Field(field) if self.holds(&field.directives) => {
                    let known = out
                        .iter_mut()
                        .find(|known| known.field.key() == field.key());
                    let below = field.composite.then_some(&field.selections[..]);
                    match known {
                        Some(known) => known.below.extend(below),
                        None => out.push(Collected {
                            field,
                            below: below.into_iter().collect(),
                        }),
                    }
                }
                Sel::Inline {
                    on,
                    directives,
                    selections,
                } if self.holds(directives)
                    && on.as_deref().is_none_or(|on| self.is_of(ty, on)) =>
                {
                    self.collect(ty, selections, out);
                }
                Sel::Spread {
                    fragment,
                    directives,
                } if self.holds(directives) => {
                    let fragment = &self.op.fragments[*fragment];
                    if self.is_of(ty, &fragment.on) {
                        self.collect(ty, &fragment.selections, out);
                    }
                }
                _ => {}
            }
        }
    }

    fn is_of(&self, ty: &str, on: &str) -> bool {
        let (Some(ty), Some(on)) = (self.schema.type_by_name(ty), self.schema.type_by_name(on))
        else {
            return false;
        };
        ty == on || self.schema.types[on].possible.contains(ty.0)
    }

    fn holds(&self, directives: &[Directive]) -> bool {
        directives.iter().all(|directive| {
            let Directive::Condition { skip, condition } = directive else {
                return true;
            };
            self.boolean(condition) != *skip
        })
    }

    fn boolean(&self, value: &Val) -> bool {
        match value {
            Val::Text(text) => text == "true",
            Val::Var(at) => self.variable(*at) == "true",
            Val::List(_) | Val::Object(_) => false,
        }
    }

    /// The value of a variable as text; empty if there is none.
    fn variable(&self, at: usize) -> String {
        let variable = &self.op.variables[at];
        let given = self.values.get(&variable.name).map(Json::to_string);
        given.or(variable.default.clone()).unwrap_or_default()
    }

    fn item(&self, ty: &str, field: &Field) -> u64 {
        if advice(ty, &field.name).is_some_and(|advice| advice.contains("@cost")) {
            return 7;
        }
        u64::from(field.composite)
    }

    /// Input objects cost 1 each.
    fn arguments(&self, ty: &str, field: &Field) -> u64 {
        let row = self.schema.type_by_name(ty);
        let row = row.and_then(|ty| self.schema.field_by_name(ty, &field.name));
        let inputs = row.map_or(&[][..], |row| &self.schema.fields[row].args);
        let costs = field.args.iter().map(|(name, value)| {
            let ty = self.input(inputs, name);
            ty.map_or(0, |ty| self.objects(ty, &self.literal(value)))
        });
        costs.sum()
    }

    fn input(&self, inputs: &[InputId], name: &str) -> Option<TypeId> {
        let mut inputs = inputs.iter().map(|id| &self.schema.inputs[*id]);
        let input = inputs.find(|input| self.schema.name(input.name) == name);
        input.map(|input| input.ty.id)
    }

    fn objects(&self, ty: TypeId, value: &Json) -> u64 {
        let row = &self.schema.types[ty];
        match value {
            Json::Array(items) => items.iter().map(|item| self.objects(ty, item)).sum(),
            Json::Object(fields) if row.kind == TypeKind::InputObject => {
                let below = fields.iter().map(|(name, value)| {
                    let ty = self.input(&row.input_fields, name);
                    ty.map_or(0, |ty| self.objects(ty, value))
                });
                1 + below.sum::<u64>()
            }
            _ => 0,
        }
    }

    fn literal(&self, value: &Val) -> Json {
        match value {
            Val::Text(text) => literal(text),
            Val::Var(at) => literal(&self.variable(*at)),
            Val::List(items) => items.iter().map(|item| self.literal(item)).collect(),
            Val::Object(fields) => {
                let fields = fields.iter();
                let fields = fields.map(|(name, value)| (name.clone(), self.literal(value)));
                Json::Object(fields.collect())
            }
        }
    }
}

/// Whether whatever has a value has one in the whole answer, too: what failed in a part nulls only that.
fn covers(whole: &Json, parts: &Json) -> bool {
    match (whole, parts) {
        (_, Json::Null) => true,
        (Json::Array(whole), Json::Array(parts)) => whole
            .iter()
            .zip(parts)
            .all(|(whole, part)| covers(whole, part)),
        (Json::Object(whole), Json::Object(parts)) => parts
            .iter()
            .all(|(key, part)| whole.get(key).is_some_and(|whole| covers(whole, part))),
        (Json::Null, _) => false,
        _ => true,
    }
}

/// A literal, or a JSON text, with names of fields and enum values as texts.
fn literal(text: &str) -> Json {
    let (mut out, mut word) = (String::new(), String::new());
    let (mut in_text, mut is_escaped) = (false, false);
    for c in text.chars().chain([' ']) {
        let is_word = !in_text && (c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+'));
        if is_word {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            let plain = matches!(&*word, "true" | "false" | "null")
                || word.starts_with(|c: char| c.is_ascii_digit() || c == '-');
            out.push_str(&if plain {
                word.clone()
            } else {
                format!("\"{word}\"")
            });
            word.clear();
        }
        in_text ^= c == '"' && !is_escaped;
        is_escaped = in_text && c == '\\' && !is_escaped;
        out.push(c);
    }
    serde_json::from_str(&out).unwrap_or_default()
}
