//! Which calls and members of scripts are not offered here.

use std::{collections::BTreeSet, fmt};

use rhai::{AST, ASTNode, Expr, Stmt};

use super::{
    ProgramError,
    loaded::Scripts,
    members,
    program::{Program, engine},
    uses::functions,
};

/// A call that nobody answers, or a member that is not there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Call {
    /// The function, with its module; or the variable and its members.
    pub name: String,
    /// What is wrong with it, to follow the name.
    pub why: &'static str,
    /// Where it is called.
    pub at: String,
}

/// Functions that are offered, besides those of the language.
const OFFERED: [&str; 42] = [
    "map_request",
    "map_response",
    "log_error",
    "log_warn",
    "log_info",
    "log_debug",
    "log_trace",
    "print",
    "debug",
    "base64::encode",
    "base64::decode",
    "json::encode",
    "json::decode",
    "json_encode",
    "json_decode",
    "sha256::digest",
    "env::get",
    "unix_now",
    "unix_ms_now",
    "uuid_v4",
    "status_code_from_int",
    "urlencode",
    "urldecode",
    "is_primary",
    "contains",
    "values",
    "keys",
    "remove",
    "len",
    "get",
    "insert",
    "upsert",
    "to_string",
    "to_int",
    "Fn",
    "call",
    "curry",
    "type_of",
    "is_def_var",
    "is_def_fn",
    "is_shared",
    "this",
];

/// Functions of the language.
const LANGUAGE: &str = include_str!("language.txt");

/// Looks at all calls of a program, in every file of its folder, and at the members of messages as far as it is known what is a
/// message; and runs its entry points.
pub fn check(program: &Program) -> Result<Vec<Call>, ProgramError> {
    let mut unknown = BTreeSet::new();
    let engine = engine(program.limits);
    for (file, text) in &program.files {
        let ast = engine.compile(text);
        let ast = ast.map_err(|error| ProgramError(format!("`{file}`: {error}")))?;
        unknown.extend(of_file(file, &ast));
        let problems = members::problems(&functions(&ast)).into_iter();
        unknown.extend(problems.map(|(of, at)| Call {
            name: of.name,
            why: of.why,
            at: format!("{file}, {at}"),
        }));
    }
    Scripts::start(program, String::new)?;
    Ok(unknown.into_iter().collect())
}

/// Most calls that one message names.
const NAMED_MAX: usize = 10;

/// Refuses a program that [`check`] finds something in.
pub fn require_offered(program: &Program) -> Result<(), ProgramError> {
    let unknown = check(program)?;
    if unknown.is_empty() {
        return Ok(());
    }
    let named = unknown.iter().take(NAMED_MAX).map(Call::to_string);
    let mut text = named.collect::<Vec<_>>().join("; ");
    if unknown.len() > NAMED_MAX {
        text.push_str(&format!("; and {} more", unknown.len() - NAMED_MAX));
    }
    Err(ProgramError(text))
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}` {}", self.at, self.name, self.why)
    }
}

/// Those of one file.
fn of_file(file: &str, ast: &AST) -> Vec<Call> {
    let mut known: BTreeSet<String> = OFFERED.iter().map(|name| (*name).to_owned()).collect();
    known.extend(LANGUAGE.lines().map(str::to_owned));
    let functions = ast.iter_functions();
    known.extend(functions.map(|function| function.name.to_owned()));
    let mut unknown = Vec::new();
    let mut imported = BTreeSet::new();
    ast.walk(&mut |path: &[ASTNode<'_>]| {
        match path.last() {
            Some(ASTNode::Stmt(Stmt::Import(import, _))) => {
                imported.insert(import.1.name.to_string());
            }
            Some(ASTNode::Stmt(Stmt::FnCall(call, at))) => {
                note(call, (file, *at), &known, &mut unknown);
            }
            Some(ASTNode::Expr(Expr::FnCall(call, at) | Expr::MethodCall(call, at))) => {
                note(call, (file, *at), &known, &mut unknown);
            }
            _ => {}
        }
        true
    });
    unknown.retain(|call| {
        let module = call.name.split("::").next().unwrap_or_default();
        !call.name.contains("::") || !imported.contains(module)
    });
    unknown
}

fn note(
    call: &rhai::FnCallExpr,
    (file, at): (&str, rhai::Position),
    known: &BTreeSet<String>,
    unknown: &mut Vec<Call>,
) {
    let is_operator = !call
        .name
        .starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let name = if call.namespace.is_empty() {
        call.name.to_string()
    } else {
        format!("{}::{}", call.namespace, call.name)
    };
    if !is_operator && !call.name.starts_with("anon$") && !known.contains(&name) {
        let at = format!("{file}, {at}");
        let why = "is not offered";
        unknown.push(Call { name, why, at });
    }
}
