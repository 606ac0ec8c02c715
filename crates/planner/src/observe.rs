//! Watching the passes of one planning run.

use ogive_plan::Plan;

use crate::{
    assign::Schedule,
    search::Found,
    tree::{Scope, Tree},
};

/// Is shown what each pass found, right after it, in the order of the passes. Whoever plans for requests watches with
/// `()`, which costs nothing.
pub trait Observer {
    /// Pass 1 is done.
    fn tree(&mut self, tree: &Tree<'_>) {
        let _ = tree;
    }
    /// Passes 2 and 3 are done: the requests chosen for each scope.
    fn search(&mut self, tree: &Tree<'_>, scopes: &[(Scope, Found)]) {
        let _ = (tree, scopes);
    }
    /// Pass 4 is done, deferred fragments included.
    fn assign(&mut self, tree: &Tree<'_>, schedule: &Schedule) {
        let _ = (tree, schedule);
    }
    /// Pass 5 is done.
    fn emit(&mut self, plan: &Plan) {
        let _ = plan;
    }
}

impl Observer for () {}
