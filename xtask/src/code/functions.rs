//! Functions fit a screen, and none is longer than [`LINES_MAX`].
//!
//! A table is not a function: one whose body is a single `match`, literal or macro has no order to follow.

use syn::{
    Block, Expr, Item, Signature, Stmt,
    visit::{self, Visit},
};

use super::{Crate, attributes, is_test};

/// Longest function, from its name to its last brace.
const LINES_MAX: usize = 100;

/// Says which functions of a crate are too long.
pub(crate) fn check(krate: &Crate) -> Vec<String> {
    let mut found = Found::default();
    for file in &krate.files {
        found.shown.clone_from(&file.shown);
        file.items.iter().for_each(|item| found.visit_item(item));
    }
    found.wrong
}

#[derive(Default)]
struct Found {
    shown: String,
    wrong: Vec<String>,
}

impl Found {
    fn look_at(&mut self, signature: &Signature, body: &Block) {
        let first = signature.fn_token.span.start().line;
        let lines = body.brace_token.span.close().end().line - first + 1;
        if lines > LINES_MAX && !is_table(body) {
            self.wrong.push(format!(
                "{}:{first}: `{}` has {lines} lines: cut it where the idea is cut (at most {LINES_MAX})",
                self.shown, signature.ident
            ));
        }
    }
}

fn is_table(body: &Block) -> bool {
    match body.stmts.as_slice() {
        [Stmt::Macro(_)] => true,
        [Stmt::Expr(expression, _)] => matches!(
            expression,
            Expr::Match(_) | Expr::Array(_) | Expr::Struct(_) | Expr::Reference(_) | Expr::Macro(_)
        ),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.look_at(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }
    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.look_at(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }
    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.look_at(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::planted, *};

    /// A function of so many lines.
    fn function(lines: usize, body: &str) -> String {
        format!(
            "fn long() {{\n{}}}\n",
            format!("{body}\n").repeat(lines - 2)
        )
    }

    #[test]
    fn a_function_of_a_hundred_lines_passes_and_one_of_a_line_more_does_not() {
        assert_eq!(
            check(&planted(&[("", &function(100, "f();"))])),
            Vec::<String>::new()
        );
        assert_eq!(
            check(&planted(&[("", &function(101, "f();"))])),
            ["lib.rs:1: `long` has 101 lines: cut it where the idea is cut (at most 100)"]
        );
    }

    #[test]
    fn tables_and_tests_may_be_long() {
        let table = format!(
            "fn table() -> u8 {{ match 1 {{\n{} }} }}",
            "1 => 2,\n".repeat(120)
        );
        assert_eq!(check(&planted(&[("", &table)])), Vec::<String>::new());
        let test = format!("#[test] {}", function(200, "f();"));
        assert_eq!(check(&planted(&[("", &test)])), Vec::<String>::new());
    }
}
