//! Where a mapping stands: which variables it may use, and what it is for.

use crate::{
    kinds::Kinds,
    limits::ParseLimits,
    shape::{ShapeId, Shapes},
    variable::Variable,
};

/// What surrounds a mapping.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Where it stands, as messages say it: `the selection`, `a header`.
    pub place: &'static str,
    /// The shapes that the other fields refer to.
    pub shapes: Shapes,
    /// The shape of `$`, the body of the response; `None` where there is no body.
    pub body: Option<ShapeId>,
    /// The shapes of variables, by [`Variable::ALL`]; `None` for those that do not exist there.
    pub variables: [Option<ShapeId>; Variable::COUNT],
    /// The type that the mapping is for.
    pub target: Option<ShapeId>,
    /// The kinds of values that it may give.
    pub expects: Kinds,
    /// Most errors, and most warnings, that the checker reports for the mapping.
    pub diagnostics_max: usize,
}

impl Environment {
    /// A mapping of a response: `$`, `$status`, `$response` exist.
    pub fn response(place: &'static str, shapes: Shapes) -> Self {
        let mut environment = Self::request(place, shapes);
        environment.body = Some(Shapes::UNKNOWN);
        environment.set(Variable::Status, Shapes::NUMBER);
        environment.set(Variable::Response, Shapes::UNKNOWN);
        environment
    }
    /// A mapping of a request: of the variables, `$config`, `$env`, `$context` and `$request` exist.
    pub fn request(place: &'static str, shapes: Shapes) -> Self {
        let mut environment = Environment {
            place,
            shapes,
            body: None,
            variables: [None; Variable::COUNT],
            target: None,
            expects: Kinds::ANY,
            diagnostics_max: ParseLimits::default().diagnostics_max,
        };
        for variable in [
            Variable::Config,
            Variable::Env,
            Variable::Context,
            Variable::Request,
        ] {
            environment.set(variable, Shapes::UNKNOWN);
        }
        environment
    }
    /// Says that a variable exists, and its shape.
    pub fn set(&mut self, variable: Variable, shape: ShapeId) {
        self.variables[variable.index()] = Some(shape);
    }
    /// Says what kinds of values the mapping may give.
    #[must_use]
    pub fn expecting(mut self, kinds: Kinds) -> Self {
        self.expects = kinds;
        self
    }
    /// The shape of a variable; `None` if it does not exist.
    pub(super) fn variable(&self, variable: Variable) -> Option<ShapeId> {
        self.variables[variable.index()]
    }
}
