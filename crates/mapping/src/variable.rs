//! The variables of the language, and where each exists.

use crate::version::Version;

/// A variable that is not bound by `->as`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Variable {
    /// `$args`: arguments of the field.
    Args,
    /// `$this`: the parent object.
    This,
    /// `$batch`: the list of entity references of a batch.
    Batch,
    /// `$config`: values of the gateway's configuration.
    Config,
    /// `$env`: environment variables of the process.
    Env,
    /// `$context`: the request context.
    Context,
    /// `$request`: `headers` of the client's request, each a list.
    Request,
    /// `$response`: `headers` of the service's response, each a list.
    Response,
    /// `$status`: the HTTP status of the response.
    Status,
}

impl Variable {
    /// How many variables there are.
    pub const COUNT: usize = 9;
    /// All variables, in order.
    pub const ALL: [Variable; Self::COUNT] = [
        Variable::Args,
        Variable::This,
        Variable::Batch,
        Variable::Config,
        Variable::Env,
        Variable::Context,
        Variable::Request,
        Variable::Response,
        Variable::Status,
    ];

    /// The name without `$`.
    pub const fn name(self) -> &'static str {
        match self {
            Variable::Args => "args",
            Variable::This => "this",
            Variable::Batch => "batch",
            Variable::Config => "config",
            Variable::Env => "env",
            Variable::Context => "context",
            Variable::Request => "request",
            Variable::Response => "response",
            Variable::Status => "status",
        }
    }
    /// The variable with that name, without `$`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
    /// The version that brought it.
    pub const fn since(self) -> Version {
        match self {
            Variable::Args
            | Variable::This
            | Variable::Config
            | Variable::Context
            | Variable::Status => Version::V0_1,
            Variable::Batch | Variable::Request | Variable::Response => Version::V0_2,
            Variable::Env => Version::V0_3,
        }
    }
    /// Its place in [`Variable::ALL`].
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_indexes_agree() {
        for (index, variable) in Variable::ALL.into_iter().enumerate() {
            assert_eq!(variable.index(), index);
            assert_eq!(Variable::from_name(variable.name()), Some(variable));
        }
        assert_eq!(Variable::from_name("arg"), None);
    }
}
