//! The context of a request while a script or a component has it.

use std::collections::BTreeSet;

use ogive_coprocessor::ContextEntries;

use super::run::{CoprocessorRun, OperationCoprocessor};
use crate::shared::hook_threads::HookThreads;

/// Entries that a hook may read and write.
pub(super) struct LentContext {
    /// Those of the request.
    pub(super) request: ContextEntries,
    /// Those of its operation, if the hook stands at one.
    pub(super) own: Option<ContextEntries>,
}

impl CoprocessorRun<'_> {
    /// Lends the context to a call in this worker, which gives it back with what it says. `None` if it is not done within its
    /// turn; the context is then as it was.
    pub(super) fn lend_context<T>(
        &self,
        operation: Option<&OperationCoprocessor<'_>>,
        call: impl FnOnce(LentContext) -> (LentContext, Option<T>),
    ) -> Option<T> {
        let before = LentContext {
            request: self.entries.borrow().clone(),
            own: operation.map(|of| of.own.borrow().clone()),
        };
        let (lent, said) = call(LentContext {
            request: self.entries.take(),
            own: operation.map(|of| of.own.take()),
        });
        let lent = if said.is_some() { lent } else { before };
        *self.entries.borrow_mut() = lent.request;
        if let (Some(of), Some(own)) = (operation, lent.own) {
            *of.own.borrow_mut() = own;
        }
        said
    }

    /// Lends a copy of the context to a call on a thread beside the workers: others of the same request may change the context
    /// meanwhile.
    pub(super) async fn lend_context_beside<T: Send + 'static>(
        &self,
        operation: Option<&OperationCoprocessor<'_>>,
        threads: &HookThreads,
        call: impl FnOnce(LentContext) -> (LentContext, T) + Send + 'static,
    ) -> T {
        let request = self.entries.borrow().clone();
        let own = operation.map(|of| of.own.borrow().clone());
        let lent = LentContext {
            request: request.clone(),
            own: own.clone(),
        };
        let called = threads.run_for(self.address, move || call(lent));
        let (lent, said) = called.await;
        merge(&request, &lent.request, &mut self.entries.borrow_mut());
        if let (Some(of), Some(before), Some(after)) = (operation, own, lent.own) {
            merge(&before, &after, &mut of.own.borrow_mut());
        }
        said
    }
}

/// Takes what was changed between two states over into a third.
fn merge(before: &ContextEntries, after: &ContextEntries, into: &mut ContextEntries) {
    let names: BTreeSet<&str> = before
        .iter()
        .chain(after.iter())
        .map(|(name, _)| name)
        .collect();
    for name in names {
        let (old, new) = (before.get(name), after.get(name));
        if old.map(|value| value.get()) == new.map(|value| value.get()) {
            continue;
        }
        match new {
            // What is too much was refused when the hook set it; what others have left since comes first.
            Some(value) => drop(into.set(name, value.to_owned())),
            None => into.remove(name),
        }
    }
}
