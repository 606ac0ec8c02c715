//! Components out of a few lines of text. `@"text"` stands for the address and the length of a text.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

/// What a component may import here: its interface, its name, its type, and the type of what it is lowered to.
const IMPORTS: [(&str, &str, &str, &str); 7] = [
    (
        "exchange",
        "header",
        "(param \"name\" string) (result (option string))",
        "(param i32 i32 i32)",
    ),
    (
        "exchange",
        "set-header",
        "(param \"name\" string) (param \"value\" string)",
        "(param i32 i32 i32 i32)",
    ),
    (
        "exchange",
        "set-body",
        "(param \"body\" string)",
        "(param i32 i32)",
    ),
    (
        "exchange",
        "end",
        "(param \"status\" u16) (param \"body\" string)",
        "(param i32 i32 i32)",
    ),
    ("exchange", "subgraph", "(result string)", "(param i32)"),
    (
        "context",
        "get",
        "(param \"name\" string) (result (option string))",
        "(param i32 i32 i32)",
    ),
    (
        "context",
        "set",
        "(param \"name\" string) (param \"value\" string)",
        "(param i32 i32 i32 i32)",
    ),
];

/// The memory and its allocation.
const BASE: &str = r#"(core module $base
  (memory (export "memory") 2)
  (global $free (mut i32) (i32.const 65536))
  (func (export "reset") (global.set $free (i32.const 65536)))
  (func (export "realloc") (param i32 i32 i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $at) (local.get $size)))
    (local.get $at)))
(core instance $base (instantiate $base))
"#;

/// What all hooks may call.
const CODE: &str = r#"
(func $deep (param i32) (result i32)
  (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (call $deep (i32.const 2))))
(func $some (param $at i32) (result i32 i32)
  (i32.load (i32.add (local.get $at) (i32.const 4))) (i32.load (i32.add (local.get $at) (i32.const 8))))
;; Adds a word to the entry `stages`.
(func $note (param $at i32) (param $length i32)
  (local $end i32)
  (call $get @"stages" (i32.const 32))
  (local.set $end (i32.const 8192))
  (if (i32.load8_u (i32.const 32))
    (then
      (memory.copy (i32.const 8192) (i32.load (i32.const 36)) (i32.sub (i32.load (i32.const 40)) (i32.const 1)))
      (local.set $end (i32.add (i32.const 8191) (i32.load (i32.const 40))))
      (i32.store8 (local.get $end) (i32.const 32)))
    (else (i32.store8 (local.get $end) (i32.const 34))))
  (local.set $end (i32.add (local.get $end) (i32.const 1)))
  (memory.copy (local.get $end) (local.get $at) (local.get $length))
  (local.set $end (i32.add (local.get $end) (local.get $length)))
  (i32.store8 (local.get $end) (i32.const 34))
  (call $set @"stages" (i32.const 8192) (i32.sub (local.get $end) (i32.const 8191))))
"#;

/// The interface for requests to other hosts, its lowering, and what asks for a URL: ending with what comes back, which is the
/// status and the body of the answer, or 502 and the error; or only waiting for it.
const HTTP: [&str; 3] = [
    r#"(import "ogive:hooks/http@1.1.0" (instance $http
  (type $pairs (list (tuple string string)))
  (type $bytes (list u8))
  (type $said (record (field "method" string) (field "url" string) (field "headers" $pairs) (field "body" $bytes)))
  (export "request" (type $request (eq $said)))
  (type $heard (record (field "status" u16) (field "headers" $pairs) (field "body" $bytes)))
  (export "response" (type $response (eq $heard)))
  (export "send" (func (param "request" $request) (result (result $response (error string)))))))
"#,
    r#"(core func $send (canon lower (func $http "send") (memory (core memory $base "memory")) (realloc (core func $base "realloc"))))
"#,
    r#"(import "host" "send" (func $send (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))
(func $ask (param $at i32) (param $length i32)
  (call $send @"GET" (local.get $at) (local.get $length) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 128))
  (if (i32.load8_u (i32.const 128))
    (then (call $end (i32.const 502) (i32.load (i32.const 132)) (i32.load (i32.const 136))))
    (else (call $end (i32.load16_u (i32.const 132)) (i32.load (i32.const 144)) (i32.load (i32.const 148))))))
(func $asked (param $at i32) (param $length i32)
  (call $send @"GET" (local.get $at) (local.get $length) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 128)))
"#,
];

/// What the hooks give that decide something: who asks, that nobody knows, a refusal, a key, and a list of texts.
const SAYS: &str = r#"
(func $said (param $case i32) (param $at i32) (param $length i32) (result i32)
  (i32.store8 (i32.const 64) (i32.const 0))
  (i32.store8 (i32.const 68) (local.get $case))
  (i32.store (i32.const 72) (local.get $at))
  (i32.store (i32.const 76) (local.get $length))
  (i32.const 64))
(func $unknown (result i32) (call $said (i32.const 0) (i32.const 0) (i32.const 0)))
(func $claims (param i32 i32) (result i32) (call $said (i32.const 1) (local.get 0) (local.get 1)))
(func $refused (param i32 i32) (result i32) (call $said (i32.const 2) (local.get 0) (local.get 1)))
(func $key (param i32 i32) (result i32) (call $said (i32.const 1) (local.get 0) (local.get 1)))
(func $list (param $at i32) (param $count i32) (result i32)
  (i32.store8 (i32.const 64) (i32.const 0))
  (i32.store (i32.const 68) (local.get $at))
  (i32.store (i32.const 72) (local.get $count))
  (i32.const 64))
;; Whoever a header of JSON says; nobody without it, and who says `no` is refused.
(func $by_header (param $at i32) (param $length i32) (result i32)
  (call $header (local.get $at) (local.get $length) (i32.const 32))
  (if (i32.eqz (i32.load8_u (i32.const 32))) (then (return (call $unknown))))
  (if (i32.eq (i32.load8_u (i32.load (i32.const 36))) (i32.const 110)) (then (return (call $refused @"secret reason" ))))
  (call $claims (call $some (i32.const 32))))
"#;

/// What a hook is given and gives, in the component and in the core module.
struct Kind {
    /// Its type, and what is said of the verdict in it.
    lifted: &'static str,
    params: &'static str,
}

fn kind(hook: &str) -> Kind {
    match hook {
        "authenticate" => Kind {
            lifted: "(result (result $verdict (error string)))",
            params: "",
        },
        "decide-policies" => Kind {
            lifted: "(param \"policies\" (list string)) (param \"kind\" string) (param \"scopes\" (list string)) \
                     (param \"claims\" string) (result (result (list string) (error string)))",
            params: "(param $policies i32) (param $count i32) (param i32 i32) (param $scopes i32) (param $scope_count i32) \
                     (param $claimed i32) (param $claimed_length i32)",
        },
        "rate-key" => Kind {
            lifted: "(result (result (option string) (error string)))",
            params: "",
        },
        _ => Kind {
            lifted: "(result (result (error string)))",
            params: "",
        },
    }
}

/// The instance of a hook. What has a type with a name is exported with it, by a component within.
fn exported(hook: &str) -> String {
    let lifted = kind(hook).lifted;
    let lift = format!(
        "(func ${hook} {lifted} (canon lift (core func $code \"{hook}\") (memory $base \"memory\") \
         (realloc (func $base \"realloc\"))))\n"
    );
    if hook != "authenticate" {
        return format!("{lift}(instance $of-{hook} (export \"handle\" (func ${hook})))\n");
    }
    let verdict = "(variant (case \"unknown\") (case \"claims\" string) (case \"refused\" string))";
    format!(
        "(type $verdict {verdict})\n{lift}\
         (component $named
           (type $plain {verdict})
           (import \"verdict\" (type $verdict (eq $plain)))
           (import \"handle\" (func $handle {lifted}))
           (export $shown \"verdict-of\" (type $verdict))
           (export \"handle-of\" (func $handle) (func (result (result $shown (error string))))))
         (instance $inner (instantiate $named (with \"verdict\" (type $verdict)) (with \"handle\" (func ${hook}))))
         (alias export $inner \"verdict-of\" (type $verdict-of))
         (alias export $inner \"handle-of\" (func $handle-of))
         (instance $of-{hook} (export \"verdict\" (type $verdict-of)) (export \"handle\" (func $handle-of)))\n"
    )
}

/// The version of the package that a hook came with.
fn version(hook: &str) -> &'static str {
    match hook {
        "authenticate" | "decide-policies" | "rate-key" => "1.1.0",
        _ => "1.0.0",
    }
}

/// A component that has these hooks. What it imports is of the first version of the package.
pub(crate) fn component(hooks: &[(&str, &str)]) -> Vec<u8> {
    let mut out = "(component\n".to_owned();
    for interface in ["exchange", "context"] {
        let _ = write!(
            out,
            "(import \"ogive:hooks/{interface}@1.0.0\" (instance ${interface}"
        );
        for (_, name, kind, _) in IMPORTS.iter().filter(|import| import.0 == interface) {
            let _ = write!(out, " (export \"{name}\" (func {kind}))");
        }
        out.push_str("))\n");
    }
    let asks = hooks.iter().any(|(_, text)| text.contains("$ask"));
    if asks {
        out.push_str(HTTP[0]);
    }
    out.push_str(BASE);
    let (mut code, mut host) = (String::new(), String::new());
    if asks {
        out.push_str(HTTP[1]);
        host.push_str(" (export \"send\" (func $send))");
    }
    for (interface, name, _, core) in IMPORTS {
        let id = name.replace('-', "_");
        let _ = writeln!(
            out,
            "(core func ${id} (canon lower (func ${interface} \"{name}\") (memory $base \"memory\") (realloc (func $base \"realloc\"))))"
        );
        let _ = writeln!(code, "(import \"host\" \"{name}\" (func ${id} {core}))");
        let _ = write!(host, " (export \"{name}\" (func ${id}))");
    }
    code.push_str(
        "(import \"base\" \"memory\" (memory 2)) (import \"base\" \"reset\" (func $reset))\n",
    );
    if asks {
        code.push_str(HTTP[2]);
    }
    code.push_str(CODE);
    code.push_str(SAYS);
    for (hook, text) in hooks {
        let params = kind(hook).params;
        // What it is given is allocated before it is called.
        let reset = if params.is_empty() {
            "(call $reset)"
        } else {
            ""
        };
        let _ = writeln!(
            code,
            "(func $do-{hook} {params} (result i32) {reset} {text})\n\
             (func (export \"{hook}\") {params} (result i32) (call $do-{hook} {}) (call $reset))",
            given(params)
        );
    }
    let _ = writeln!(
        out,
        "(core module $code\n{})\n(core instance $code (instantiate $code (with \"base\" (instance $base)) (with \"host\" (instance{host}))))",
        with_texts(&code)
    );
    for (hook, _) in hooks {
        let _ = writeln!(
            out,
            "{}(export \"ogive:hooks/{hook}@{}\" (instance $of-{hook}))",
            exported(hook),
            version(hook)
        );
    }
    out.push(')');
    wat::parse_str(&out).unwrap_or_else(|error| panic!("{error}\n{out}"))
}

/// All of what a function is given, for another one.
fn given(params: &str) -> String {
    let count = params.matches("i32").count();
    (0..count).fold(String::new(), |mut out, at| {
        let _ = write!(out, "(local.get {at}) ");
        out
    })
}

/// Puts the texts of a module where nothing else is.
fn with_texts(module: &str) -> String {
    let (mut data, mut at) = (String::new(), 1024);
    let mut parts = module.split("@\"");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let (text, rest) = part.split_once('"').unwrap();
        let text = text.replace('\'', "\"");
        let _ = write!(out, "(i32.const {at}) (i32.const {}) {rest}", text.len());
        let text_of = text.replace('"', "\\\"");
        let _ = writeln!(data, "(data (i32.const {at}) \"{text_of}\")");
        at += text.len();
    }
    out + &data
}

/// The file of a component; gone with the test.
pub(crate) struct Guest(PathBuf);

impl Guest {
    pub(crate) fn new(hooks: &[(&str, &str)]) -> Guest {
        Guest::of(&component(hooks))
    }
    pub(crate) fn of(bytes: &[u8]) -> Guest {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ogive-e2e-component-{}-{number}.wasm", std::process::id());
        let guest = Guest(std::env::temp_dir().join(name));
        guest.write(bytes);
        guest
    }
    pub(crate) fn write(&self, bytes: &[u8]) {
        std::fs::write(&self.0, bytes).unwrap();
    }
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
    /// A configuration with it, and with what it is permitted and limited to.
    pub(crate) fn yaml(&self, more: &str) -> String {
        let path = self.0.display();
        // A call may have to wait for its turn; what never ends has its fuel.
        let limits = if more.contains("limits:") {
            ""
        } else {
            "limits: { timeout: 60s }, "
        };
        format!(
            "plugins: [{{ name: guest, path: '{path}', ejection: {{ faults: 1000000 }}, {limits}{more} }}]\n"
        )
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
