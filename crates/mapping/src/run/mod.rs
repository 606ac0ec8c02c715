//! Running a program over JSON bytes.
//!
//! 1. [`pick`] walks the body once and keeps what the program reads: scalars and unread subtrees as byte ranges, objects
//!    as slots. Everything else is skipped, not parsed.
//! 2. [`eval`] walks the program; [`key`] follows keys; methods are in [`lists`], [`logic`], [`numbers`], [`objects`],
//!    [`texts`].
//! 3. [`mod@write`] writes the result; what no method touched is copied byte for byte.
//!
//! Every step costs fuel, and all memory is counted. What goes wrong with data is a [`Problem`], and the value is missing;
//! what goes beyond a limit, and a body that is no JSON, is a [`Failure`] of the whole run.

mod calls;
mod eval;
mod failure;
mod heap;
mod key;
mod lists;
mod logic;
mod numbers;
mod objects;
mod pick;
mod problem;
mod texts;
mod write;

use crate::{limits::RunLimits, program::Program, variable::Variable};
use eval::{Run, Scope};
use heap::{Heap, Value};

pub use failure::Failure;
pub use problem::Problem;

/// What a program runs over: JSON texts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs<'a> {
    body: Option<&'a [u8]>,
    variables: [Option<&'a [u8]>; Variable::COUNT],
}

impl<'a> Inputs<'a> {
    /// A run without a body: of a request, or of a response that has none.
    pub fn new() -> Self {
        Self::default()
    }
    /// Says what the body is.
    #[must_use]
    pub fn body(mut self, json: &'a [u8]) -> Self {
        self.body = Some(json);
        self
    }
    /// Says what a variable is.
    #[must_use]
    pub fn variable(mut self, variable: Variable, json: &'a [u8]) -> Self {
        self.variables[variable.index()] = Some(json);
        self
    }
}

/// What a run gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The result as JSON; `None` if it is missing.
    pub json: Option<Vec<u8>>,
    /// What went wrong with parts of it, in the order in which it was found.
    pub problems: Vec<Problem>,
    /// How many problems were found, those beyond the limit included.
    pub problems_total: u64,
    /// Fuel that was used.
    pub steps: u64,
}

impl Program {
    /// Runs over inputs.
    pub fn run(&self, inputs: &Inputs<'_>, limits: &RunLimits) -> Result<Outcome, Failure> {
        let mut run = Run::new(self, inputs, limits);
        let value = run.whole()?;
        let json = match value {
            Value::Missing => None,
            value => {
                let mut out = Vec::new();
                run.write(value, &mut out)?;
                Some(out)
            }
        };
        Ok(run.finish(json))
    }

    /// Runs over inputs and gives the result as text: of null and a missing value it is empty. `None` if the result is a
    /// list or an object.
    pub fn run_text(
        &self,
        inputs: &Inputs<'_>,
        limits: &RunLimits,
    ) -> Result<Option<String>, Failure> {
        let mut run = Run::new(self, inputs, limits);
        let value = run.whole()?;
        Ok(run.scalar_text(value))
    }

    /// Runs over inputs and gives the result as pieces of text: a scalar is one, a list of scalars one for each item.
    /// Null and missing values are no piece. `None` if the result is an object or holds a list or an object.
    pub fn run_texts(
        &self,
        inputs: &Inputs<'_>,
        limits: &RunLimits,
    ) -> Result<Option<Vec<String>>, Failure> {
        let mut run = Run::new(self, inputs, limits);
        let value = run.whole()?;
        run.pieces(value, &mut 0)
    }

    /// Runs over inputs and gives the members of the resulting object, each as [`Program::run_texts`] gives it. `None` if
    /// the result is no object, or a member is one or holds one.
    pub fn run_members(
        &self,
        inputs: &Inputs<'_>,
        limits: &RunLimits,
    ) -> Result<Option<Vec<Member>>, Failure> {
        let mut run = Run::new(self, inputs, limits);
        let value = run.whole()?;
        run.member_pieces(value)
    }
}

/// A member of an object, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The key.
    pub name: String,
    /// The pieces of its value: one of a scalar, one of each item of a list.
    pub pieces: Vec<String>,
}

impl<'p> Run<'p> {
    fn new(program: &'p Program, inputs: &Inputs<'p>, limits: &'p RunLimits) -> Self {
        Run {
            program,
            heap: Heap::new(program, inputs),
            limits,
            steps_left: limits.steps_max,
            nesting: 0,
            stack: Vec::new(),
            members: Vec::new(),
            locals: vec![Value::Missing; program.locals],
            variables: [Value::Missing; Variable::COUNT],
            problems: problem::Problems::default(),
        }
    }

    fn whole(&mut self) -> Result<Value, Failure> {
        let body = self.read_inputs()?;
        let scope = Scope {
            dollar: body,
            at: body,
        };
        if self.program.root_selects {
            // Without a body there are no keys to select, but literals and variables.
            if body.is_missing() {
                return self.eval(self.program.root, scope);
            }
            return self.select(self.program.root, self.program.body, body);
        }
        self.eval(self.program.root, scope)
    }

    fn finish(self, json: Option<Vec<u8>>) -> Outcome {
        let problems_total = self.problems.total();
        let problems = self.problems.locate(&self.heap);
        Outcome {
            json,
            problems,
            problems_total,
            steps: self.limits.steps_max - self.steps_left,
        }
    }
}
