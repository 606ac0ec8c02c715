//! The stages of a request are what the list of stages says: every type that is a `Stage` is a field of the gateway's
//! `Pipeline`, stands in `list` at the place of its field, and is called.

use std::collections::BTreeSet;

use syn::{
    Expr, ExprField, ExprPath, GenericArgument, Item, ItemFn, ItemStruct, Macro, Member, Path,
    PathArguments, Type,
    visit::{self, Visit},
};

use super::Crate;

/// Where the pipeline and its list are.
const FILE: &str = "crates/gateway/src/stages.rs";

/// What is wrong with the stages of the gateway; nothing of any other crate.
pub(crate) fn check(krate: &Crate) -> Vec<String> {
    if krate.name != "gateway" {
        return Vec::new();
    }
    let (mut declared, mut called) = (BTreeSet::new(), Accessed::default());
    let (mut fields, mut list) = (Vec::new(), Listed::default());
    for file in &krate.files {
        for item in &file.items {
            match item {
                Item::Impl(of) if is_stage(of.trait_.as_ref().map(|(path, _)| path)) => {
                    declared.extend(name(&of.self_ty));
                }
                Item::Struct(of) if file.shown == FILE && of.ident == "Pipeline" => {
                    fields = fields_of(of);
                }
                Item::Fn(of) if file.shown == FILE && of.sig.ident == "list" => {
                    list.visit_item_fn(of);
                }
                _ => {}
            }
            if file.shown != FILE {
                called.visit_item(item);
            }
        }
    }
    let list = list.0;
    let mut wrong = Vec::new();
    let types: Vec<&String> = fields.iter().map(|(_, ty)| ty).collect();
    if types != list.iter().collect::<Vec<_>>() {
        wrong.push(format!(
            "{FILE}: `list` names the stages {list:?}, and the fields of `Pipeline` are {types:?}"
        ));
    }
    for stage in declared.iter().filter(|stage| !list.contains(stage)) {
        wrong.push(format!(
            "{FILE}: `{stage}` is a `Stage`, and `list` does not name it"
        ));
    }
    for (field, _) in fields.iter().filter(|(field, _)| !called.0.contains(field)) {
        wrong.push(format!("{FILE}: no request passes the stage `{field}`"));
    }
    wrong
}

fn is_stage(path: Option<&Path>) -> bool {
    let last = path.and_then(|path| path.segments.last());
    last.is_some_and(|last| last.ident == "Stage")
}

/// The name of a type; of an `Option` that of what is in it.
fn name(ty: &Type) -> Option<String> {
    let Type::Path(path) = ty else {
        return None;
    };
    let last = path.path.segments.last()?;
    match first_argument(&last.arguments) {
        Some(inner) if last.ident == "Option" => name(inner),
        _ => Some(last.ident.to_string()),
    }
}

fn first_argument(arguments: &PathArguments) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    }
}

fn fields_of(of: &ItemStruct) -> Vec<(String, String)> {
    let fields = of.fields.iter();
    let named =
        fields.filter_map(|field| Some((field.ident.as_ref()?.to_string(), name(&field.ty)?)));
    named.collect()
}

/// The types in `StageLine::of::<T>`.
#[derive(Default)]
struct Listed(Vec<String>);

impl<'a> Visit<'a> for Listed {
    fn visit_item_fn(&mut self, of: &'a ItemFn) {
        visit::visit_block(self, &of.block);
    }
    fn visit_expr_path(&mut self, of: &'a ExprPath) {
        if let Some(last) = of.path.segments.last().filter(|last| last.ident == "of") {
            self.0
                .extend(first_argument(&last.arguments).and_then(name));
        }
    }
}

/// Names of fields that are read.
#[derive(Default)]
struct Accessed(BTreeSet<String>);

impl<'a> Visit<'a> for Accessed {
    fn visit_expr_field(&mut self, of: &'a ExprField) {
        if let Member::Named(name) = &of.member {
            self.0.insert(name.to_string());
        }
        visit::visit_expr_field(self, of);
    }
    /// What a macro such as `pin!` takes is often an expression.
    fn visit_macro(&mut self, of: &'a Macro) {
        if let Ok(expression) = of.parse_body::<Expr>() {
            let mut within = Accessed::default();
            within.visit_expr(&expression);
            self.0.append(&mut within.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::SourceFile;

    fn planted(stages: &str, other: &str) -> Crate {
        let file = |shown: &str, text: &str| SourceFile {
            shown: shown.to_owned(),
            path: vec!["x".to_owned()],
            items: syn::parse_file(text)
                .expect("the test's text is Rust")
                .items,
        };
        Crate {
            name: "gateway".to_owned(),
            files: vec![
                file(FILE, stages),
                file("crates/gateway/src/other.rs", other),
            ],
        }
    }

    const OTHER: &str =
        "impl Stage for A {} impl Stage for B {} fn f(p: P) { p.a.run(); p.b.run() }";

    #[test]
    fn stages_that_are_listed_and_called_are_right() {
        let stages =
            "struct Pipeline { a: A, b: Option<B> } fn list() { (S::of::<A>(), S::of::<B>()) }";
        assert_eq!(check(&planted(stages, OTHER)), Vec::<String>::new());
    }

    #[test]
    fn a_stage_that_is_not_listed_or_not_called_is_refused() {
        let unlisted = "struct Pipeline { a: A, b: Option<B> } fn list() { S::of::<A>() }";
        assert_eq!(check(&planted(unlisted, OTHER)).len(), 2);
        let turned = "struct Pipeline { a: A, b: B } fn list() { (S::of::<B>(), S::of::<A>()) }";
        assert_eq!(check(&planted(turned, OTHER)).len(), 1);
        let stages = "struct Pipeline { a: A, b: B } fn list() { (S::of::<A>(), S::of::<B>()) }";
        let uncalled = OTHER.replace("p.b.run()", "");
        assert_eq!(check(&planted(stages, &uncalled)).len(), 1);
    }
}
