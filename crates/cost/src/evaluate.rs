//! The number of a program for the variables of one request.

use ogive_federation::Costs;
use ogive_operation::{FieldNodeId, Variables};
use ogive_plan::FieldCost;
use ogive_schema::Schema;

use crate::{
    program::{ABSENT, Operand, Operands, Program, Step, Value},
    values,
};

/// What an operation costs with the variables of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Estimate {
    /// The cost; [`u64::MAX`] is where counting ends.
    pub cost: u64,
    /// A field that has to be given exactly one slicing argument, and is not.
    pub unsized_field: Option<FieldNodeId>,
}

/// What one field of an operation costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldEstimate {
    /// The field.
    pub field: FieldNodeId,
    /// Items in one list; 1 if it is no list.
    pub size: u64,
    /// What it costs on one object, with all of its selections.
    pub cost: u64,
}

/// Room for the results of steps, to be used again.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    results: Vec<Value>,
}

impl Program {
    /// The cost for these variables, which are coerced. `schema` and `costs` are what the program was compiled with.
    pub fn evaluate(
        &self,
        schema: &Schema,
        costs: &Costs,
        variables: &Variables,
        scratch: &mut Scratch,
    ) -> Estimate {
        self.run(schema, costs, variables, scratch);
        let total = get(self.total, &scratch.results);
        let node = total.broken.checked_sub(1).map(FieldNodeId);
        Estimate {
            cost: total.number,
            unsized_field: node,
        }
    }

    /// What each field costs, in the order of the operation's fields; nothing if the program was compiled without
    /// [`fields`](crate::Settings::fields).
    pub fn evaluate_fields(
        &self,
        schema: &Schema,
        costs: &Costs,
        variables: &Variables,
        scratch: &mut Scratch,
    ) -> Vec<FieldEstimate> {
        self.run(schema, costs, variables, scratch);
        let rows = self.fields.iter().map(|row| FieldEstimate {
            field: row.node,
            size: get(row.size, &scratch.results).number,
            cost: get(row.cost, &scratch.results).number,
        });
        rows.collect()
    }

    /// What each variant of a field costs on one object: its arguments, and each of its items without selections. Nothing
    /// if the program was compiled without [`fields`](crate::Settings::fields).
    pub(crate) fn evaluate_variants(
        &self,
        (schema, costs): (&Schema, &Costs),
        variables: &Variables,
        scratch: &mut Scratch,
    ) -> Vec<FieldCost> {
        if !self.variants_are_fixed() {
            self.run(schema, costs, variables, scratch);
        }
        let rows = self.variants.iter().map(|row| FieldCost {
            args: get(row.args, &scratch.results).number,
            item: row.weight,
        });
        rows.collect()
    }

    /// Whether what the variants of all fields cost depends on no variable.
    pub fn variants_are_fixed(&self) -> bool {
        let mut rows = self.variants.iter();
        rows.all(|row| matches!(row.args, Operand::Const(_)))
    }

    fn run(&self, schema: &Schema, costs: &Costs, variables: &Variables, scratch: &mut Scratch) {
        let results = &mut scratch.results;
        results.clear();
        results.reserve(self.steps.len());
        let input = values::Inputs { schema, costs };
        for step in &self.steps {
            let result = match step {
                Step::Given { variable, path } => {
                    let text = text(variables, *variable);
                    let path = self.paths.get(*path as usize);
                    let path = path.map_or(&[][..], Vec::as_slice);
                    let size = text.and_then(|text| input.size(text, path));
                    Value::of(size.unwrap_or(ABSENT))
                }
                Step::Default { variable, number } => {
                    let is_absent = text(variables, *variable).is_none();
                    Value::of(if is_absent { *number } else { ABSENT })
                }
                Step::Input {
                    variable,
                    ty,
                    weight,
                } => {
                    let text = text(variables, *variable);
                    Value::of(text.map_or(0, |text| input.cost(text, *ty, *weight)))
                }
                Step::Size {
                    given,
                    fallback,
                    one,
                } => {
                    let pairs = self.of(given).chunks_exact(2);
                    let pairs = pairs.map(|pair| (get(pair[0], results), get(pair[1], results)));
                    size(pairs, *fallback, *one)
                }
                Step::Field { cond, field } => {
                    let holds = cond.is_none_or(|cond| self.holds(cond, variables));
                    let value = |operand| get(operand, results);
                    let [args, size] = [field.args, field.size].map(value);
                    let item = Value::of(field.weight).plus(value(field.selections));
                    let items = size.times(Value::of(field.nested)).times(item);
                    // What is not answered costs nothing, whatever is below it.
                    Some(args.plus(items)).filter(|_| holds).unwrap_or_default()
                }
                Step::Sum(of) => {
                    let each = self.of(of).iter().map(|o| get(*o, results));
                    each.fold(Value::ZERO, Value::plus)
                }
                Step::Max(of) => {
                    let each = self.of(of).iter().map(|o| get(*o, results));
                    each.fold(Value::ZERO, Value::max)
                }
            };
            results.push(result);
        }
    }

    fn of(&self, range: &Operands) -> &[Operand] {
        let range = range.start as usize..range.end as usize;
        self.operands.get(range).unwrap_or_default()
    }

    fn holds(&self, cond: u32, variables: &Variables) -> bool {
        let value = |v: u32| v >= self.variables || variables.boolean(v as usize) == Some(true);
        let Some(clauses) = self.conditions.get(cond as usize) else {
            return true;
        };
        clauses
            .iter()
            .any(|clause| clause.iter().all(|(v, want)| value(*v) == *want))
    }
}

/// The largest of sizes, each given or else its default; `fallback` if there is neither of any.
pub(crate) fn size(
    pairs: impl Iterator<Item = (Value, Value)>,
    fallback: u64,
    one: Option<FieldNodeId>,
) -> Value {
    let (mut most, mut present) = (Value::ZERO, 0_usize);
    let (mut is_said, mut has_default) = (false, false);
    for (given, default) in pairs {
        let is_given = given.number != ABSENT;
        present += usize::from(is_given);
        has_default |= default.number != ABSENT;
        let size = if is_given { given } else { default };
        let number = Some(size.number).filter(|size| *size != ABSENT);
        is_said |= number.is_some();
        // A size that nobody says may be one that should have been said.
        most = most.max(given.with(default, number.unwrap_or(0)));
    }
    if !is_said {
        most.number = fallback;
    }
    match one {
        // A default of the schema is as good as a value of the operation.
        Some(node) if most.broken == 0 && present != 1 && (present > 0 || !has_default) => Value {
            broken: node.0.saturating_add(1),
            ..most
        },
        _ => most,
    }
}

fn get(operand: Operand, results: &[Value]) -> Value {
    match operand {
        Operand::Const(amount) => amount,
        Operand::Step(step) => results.get(step as usize).copied().unwrap_or_default(),
    }
}

fn text(variables: &Variables, variable: u32) -> Option<&str> {
    variables.values.get(variable as usize)?.as_deref()
}
