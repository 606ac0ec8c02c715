//! Rules of federation about one subgraph on its own, after federation 1 subgraphs were upgraded.

mod cache_tag;
mod context;
mod cost;

use ogive_base::Span;
use ogive_federation::vocabulary::Version;
use ogive_schema::{ConstValue, FieldId, OperationKind, TypeId, TypeKind};

use crate::{
    codes, events,
    fields::{self, Item},
    merge::root_name,
    report::{Place, Report},
    spec::Word,
    subgraph::Subgraph,
};

/// Checks one subgraph.
pub(crate) fn validate(sub: &Subgraph, report: &mut Report) {
    let mut check = Check { sub, report };
    check.names();
    let types: Vec<TypeId> = sub.merged_types().collect();
    for ty in types {
        check.keys(ty);
        check.interface_object(ty);
        for field in &sub.schema.types[ty].fields {
            check.field(ty, *field);
        }
        check.authorisation(ty);
        check.tags(ty);
    }
    context::validate(sub, check.report);
    cost::validate(sub, check.report);
    cache_tag::validate(sub, check.report);
    events::check(sub, check.report);
}

struct Check<'a, 'r> {
    sub: &'a Subgraph,
    report: &'r mut Report,
}

impl Check<'_, '_> {
    fn at(&self, span: Span) -> [(Place, String); 1] {
        [(self.sub.place(span), String::new())]
    }

    fn names(&mut self) {
        let sub = self.sub;
        if &*sub.name == "_" {
            self.report.error_help(
                codes::INVALID_SUBGRAPH_NAME,
                "",
                "`_` is reserved and cannot be the name of a subgraph".into(),
                "choose another name".into(),
                &self.at(Span::new(0, 0)),
            );
        }
        for (kind, code) in [
            (OperationKind::Query, codes::ROOT_QUERY_USED),
            (OperationKind::Mutation, codes::ROOT_MUTATION_USED),
            (OperationKind::Subscription, codes::ROOT_SUBSCRIPTION_USED),
        ] {
            let name = root_name(kind);
            if let (Some(root), Some(named)) =
                (sub.schema.root(kind), sub.schema.type_by_name(name))
                && root != named
            {
                let message = format!(
                    "`{name}` is not the {} root type of subgraph `{}`, which is `{}`",
                    kind.as_str(),
                    sub.name,
                    sub.schema.type_name(root)
                );
                let at = self.at(sub.schema.types[named].span);
                self.report
                    .error_help(code, name, message, "rename one of the two".into(), &at);
            }
        }
    }

    fn keys(&mut self, ty: TypeId) {
        let sub = self.sub;
        let name = sub.schema.type_name(ty);
        let interface = sub.schema.types[ty].kind == TypeKind::Interface;
        for key in &sub.types[ty].keys {
            if interface && sub.version.is_none_or(|v| v < Version::new(2, 3)) {
                self.report.error_help(
                    codes::KEY_UNSUPPORTED_ON_INTERFACE,
                    name,
                    format!("`@key` on interface `{name}` needs federation v2.3"),
                    "link `https://specs.apollo.dev/federation/v2.3` or newer".into(),
                    &self.at(key.span),
                );
                continue;
            }
            self.key_fields(name, &key.items, key.span);
        }
        if interface {
            self.interface_keys(ty);
        }
    }

    fn key_fields(&mut self, name: &str, items: &[Item], span: Span) {
        let sub = self.sub;
        let mut bad: Vec<(&'static str, String)> = Vec::new();
        fields::each_field(items, &mut |field, _| {
            let row = &sub.schema.fields[field];
            let coordinate = sub.coordinate(field);
            if !row.args.is_empty() {
                bad.push((
                    codes::KEY_FIELDS_HAS_ARGS,
                    format!("key of `{name}` selects `{coordinate}`, which takes arguments"),
                ));
            } else if sub.schema.types[row.ty.id].kind.is_abstract() {
                bad.push((
                    codes::KEY_FIELDS_SELECT_INVALID_TYPE,
                    format!("key of `{name}` selects `{coordinate}` of type `{}`, an interface or union", sub.schema.type_name(row.ty.id)),
                ));
            }
        });
        for (code, message) in bad.into_iter().take(1) {
            self.report.error_help(
                code,
                name,
                message,
                "choose plain fields that identify the object".into(),
                &self.at(span),
            );
        }
    }

    /// Implementations in the same subgraph have the keys of their interface.
    fn interface_keys(&mut self, ty: TypeId) {
        let sub = self.sub;
        let name = sub.schema.type_name(ty).to_owned();
        for key in &sub.types[ty].keys {
            let names = names_of(sub, &key.items);
            let lacking: Vec<TypeId> = sub.schema.types[ty]
                .possible
                .iter()
                .map(TypeId)
                .filter(|t| {
                    !sub.types[*t].keys.iter().any(|k| {
                        names_of(sub, &k.items) == names && (!key.resolvable || k.resolvable)
                    })
                })
                .collect();
            if lacking.is_empty() {
                continue;
            }
            let mut at = vec![(sub.place(key.span), "this key".to_owned())];
            at.extend(
                lacking
                    .iter()
                    .map(|t| (sub.place(sub.schema.types[*t].span), "lacks it".to_owned())),
            );
            let types = crate::report::quoted(lacking.iter().map(|t| sub.schema.type_name(*t)));
            self.report.error_help(
                codes::INTERFACE_KEY_NOT_ON_IMPLEMENTATION,
                &name,
                format!(
                    "`@key(fields: \"{}\")` of interface `{name}` is missing on {types}",
                    key.text
                ),
                format!("add `@key(fields: \"{}\")` to {types}", key.text),
                &at,
            );
        }
    }

    fn interface_object(&mut self, ty: TypeId) {
        let sub = self.sub;
        let info = &sub.types[ty];
        let keyed = sub
            .find(&sub.schema.types[ty].directives, Word::Key)
            .is_some();
        if !info.interface_object || keyed {
            return;
        }
        let name = sub.schema.type_name(ty);
        let at = self.at(sub.schema.types[ty].span);
        self.report.error_help(
            codes::INTERFACE_OBJECT_USAGE_ERROR,
            name,
            format!("`@interfaceObject` on `{name}` means nothing without a key"),
            format!("add the `@key` that interface `{name}` has elsewhere"),
            &at,
        );
    }

    fn field(&mut self, ty: TypeId, field: FieldId) {
        let sub = self.sub;
        let info = &sub.fields[field];
        let row = &sub.schema.fields[field];
        let coordinate = sub.coordinate(field);
        let interface = sub.schema.types[ty].kind == TypeKind::Interface;
        self.external(ty, field, &coordinate, interface);
        self.shareable(field, &coordinate, interface);
        self.overridden(field, &coordinate, interface);
        if let Some(set) = &info.requires {
            if interface {
                self.report.error(
                    codes::REQUIRES_UNSUPPORTED_ON_INTERFACE,
                    &coordinate,
                    format!("`@requires` on `{coordinate}`: fields of interfaces require nothing"),
                    &self.at(set.span),
                );
            }
            self.must_be_external(
                codes::REQUIRES_FIELDS_MISSING_EXTERNAL,
                "requires",
                &coordinate,
                &set.items,
                set.span,
            );
        }
        let provides = sub.find(&row.directives, Word::Provides);
        if let Some(applied) = provides
            && !sub.schema.types[row.ty.id].kind.is_composite()
            && !sub.is_v1()
        {
            self.report.error_help(
                codes::PROVIDES_ON_NON_OBJECT_FIELD,
                &coordinate,
                format!(
                    "`@provides` on `{coordinate}`, which is of type `{}` and has no fields",
                    sub.schema.display_type(row.ty)
                ),
                "remove it".into(),
                &self.at(applied.span),
            );
        }
        if let Some(set) = &info.provides {
            if interface {
                self.report.error(
                    codes::PROVIDES_UNSUPPORTED_ON_INTERFACE,
                    &coordinate,
                    format!("`@provides` on `{coordinate}`: fields of interfaces provide nothing"),
                    &self.at(set.span),
                );
            } else if let Some(with_args) = first_with_args(sub, &set.items) {
                let other = sub.coordinate(with_args);
                self.report.error(
                    codes::PROVIDES_FIELDS_HAS_ARGS,
                    &coordinate,
                    format!(
                        "`@provides` on `{coordinate}` selects `{other}`, which takes arguments"
                    ),
                    &self.at(set.span),
                );
            } else {
                self.must_be_external(
                    codes::PROVIDES_FIELDS_MISSING_EXTERNAL,
                    "provides",
                    &coordinate,
                    &set.items,
                    set.span,
                );
            }
        }
    }

    fn external(&mut self, ty: TypeId, field: FieldId, coordinate: &str, interface: bool) {
        let sub = self.sub;
        let info = &sub.fields[field];
        let Some(span) = info.marked_external else {
            return;
        };
        if interface {
            self.report.error_help(
                codes::EXTERNAL_ON_INTERFACE,
                coordinate,
                format!("`{coordinate}` is a field of an interface and cannot be external"),
                "mark it on the implementations instead".into(),
                &self.at(span),
            );
        }
        if !info.external {
            return;
        }
        // In federation 1, `@provides` on what has no fields means nothing.
        let provides = sub
            .find(&sub.schema.fields[field].directives, Word::Provides)
            .filter(|_| !sub.is_v1() || info.provides.is_some());
        if let Some(provides) = provides {
            let at = [
                (sub.place(provides.span), String::new()),
                (sub.place(span), String::new()),
            ];
            self.report.error_help(
                codes::EXTERNAL_COLLISION_WITH_ANOTHER_DIRECTIVE,
                coordinate,
                format!("`{coordinate}` is external and has `@provides`, which says what its resolver returns"),
                "remove one of the two".into(),
                &at,
            );
        }
        let by_interface = sub.schema.types[ty].interfaces.iter().any(|i| {
            sub.schema
                .fields_by_name
                .contains_key(&(*i, sub.schema.fields[field].name))
        });
        if !info.used && !by_interface {
            self.report.error_help(
                codes::EXTERNAL_UNUSED,
                coordinate,
                format!("external `{coordinate}` is used by no `@key`, `@requires` or `@provides` of subgraph `{}`", sub.name),
                "remove the field, or use it".into(),
                &self.at(span),
            );
        }
    }

    fn shareable(&mut self, field: FieldId, coordinate: &str, interface: bool) {
        let sub = self.sub;
        let Some(span) = sub.fields[field].marked_shareable else {
            return;
        };
        if !interface {
            return;
        }
        let message = format!(
            "`{coordinate}` is a field of an interface; `@shareable` stands on fields of objects"
        );
        self.report.error_help(
            codes::INVALID_SHAREABLE_USAGE,
            coordinate,
            message,
            "remove `@shareable`".into(),
            &self.at(span),
        );
    }

    fn overridden(&mut self, field: FieldId, coordinate: &str, interface: bool) {
        let sub = self.sub;
        let info = &sub.fields[field];
        let Some(over) = &info.overrides else { return };
        if interface {
            self.report.error_help(
                codes::OVERRIDE_ON_INTERFACE,
                coordinate,
                format!("`{coordinate}` is a field of an interface, and `@override` moves fields of objects"),
                "override the field on the implementations".into(),
                &self.at(over.span),
            );
            return;
        }
        if let Some(label) = &over.label
            && !is_label(label)
        {
            self.report.error_help(
                codes::OVERRIDE_LABEL_INVALID,
                coordinate,
                format!("`{label}` is no label of an `@override`"),
                "a label is a name (letters, digits, `_`, `-`, `:`, `.`, `/`, starting with a letter) or `percent(N)` with N from 0 to 100".into(),
                &self.at(over.span),
            );
        }
    }

    fn on_interface(&self, coordinate: &str) -> bool {
        let ty = coordinate
            .split('.')
            .next()
            .and_then(|t| self.sub.schema.type_by_name(t));
        ty.is_some_and(|t| self.sub.schema.types[t].kind == TypeKind::Interface)
    }

    /// Leaves of `@requires` and `@provides` are external, or below something external.
    fn must_be_external(
        &mut self,
        code: &'static str,
        directive: &str,
        coordinate: &str,
        items: &[Item],
        span: Span,
    ) {
        // A field of an interface is external if it is so on an implementation; an interface requiring its own is not.
        let lenient = directive != "requires" || !self.on_interface(coordinate);
        let mut bad: Vec<FieldId> = Vec::new();
        leaves_not_external(self.sub, items, (false, lenient), &mut bad);
        for field in bad {
            let sub = self.sub;
            let other = sub.coordinate(field);
            let fake = sub.fields[field].marked_external.is_some();
            let why = if fake {
                "a key field of an extension, which the subgraph resolves although it says `@external`"
            } else {
                "not `@external`"
            };
            let at = [
                (sub.place(span), String::new()),
                (sub.place(sub.schema.fields[field].span), why.to_owned()),
            ];
            self.report.error_help(
                code,
                coordinate,
                format!("`@{directive}` on `{coordinate}` selects `{other}`, which subgraph `{}` resolves itself", sub.name),
                if fake { format!("leave `{other}` out of `@{directive}`") } else { format!("mark `{other}` `@external`, or leave it out") },
                &at,
            );
        }
    }

    fn authorisation(&mut self, ty: TypeId) {
        let sub = self.sub;
        let kind = sub.schema.types[ty].kind;
        let forbidden = kind == TypeKind::Interface || sub.types[ty].interface_object;
        if !forbidden {
            return;
        }
        let words = [Word::Authenticated, Word::RequiresScopes, Word::Policy];
        let mut found: Vec<(String, Span)> = Vec::new();
        let own = &sub.schema.types[ty].directives;
        found.extend(
            words.iter().filter_map(|w| {
                Some((sub.schema.type_name(ty).to_owned(), sub.find(own, *w)?.span))
            }),
        );
        if kind == TypeKind::Interface {
            for field in &sub.schema.types[ty].fields {
                let list = &sub.schema.fields[*field].directives;
                found.extend(
                    words
                        .iter()
                        .filter_map(|w| Some((sub.coordinate(*field), sub.find(list, *w)?.span))),
                );
            }
        }
        for (about, span) in found {
            self.report.error_help(
                codes::AUTH_REQUIREMENTS_APPLIED_ON_INTERFACE,
                &about,
                format!("`{about}` asks for authorisation on an interface; interfaces take it from their implementations"),
                "move the directive to the implementations".into(),
                &self.at(span),
            );
        }
    }

    fn tags(&mut self, ty: TypeId) {
        let sub = self.sub;
        let Some(tag) = sub.words[Word::Tag as usize] else {
            return;
        };
        let row = &sub.schema.types[ty];
        let lists = std::iter::once((sub.schema.type_name(ty).to_owned(), &row.directives)).chain(
            row.fields
                .iter()
                .map(|f| (sub.coordinate(*f), &sub.schema.fields[*f].directives)),
        );
        let mut bad: Vec<(String, String, Span)> = Vec::new();
        for (about, list) in lists {
            for applied in list.iter().filter(|d| d.name == tag) {
                if let Some(name) = sub.arg(applied, "name").and_then(ConstValue::as_str)
                    && !is_tag(name)
                {
                    bad.push((about.clone(), name.to_owned(), applied.span));
                }
            }
        }
        for (about, name, span) in bad {
            self.report.error_help(
                codes::INVALID_TAG_NAME,
                &about,
                format!("`{name}` is no name of a `@tag`"),
                "use up to 128 letters, digits, `_`, `-` and `/`".into(),
                &self.at(span),
            );
        }
    }
}

/// Most characters of a tag's name.
const TAG_MAX: usize = 128;

/// Names contracts can list; version 2.14 of the reference takes any, later ones these.
fn is_tag(name: &str) -> bool {
    (1..=TAG_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-/".contains(&b))
}

/// A label: a name, or a percentage with at most eight decimals.
fn is_label(label: &str) -> bool {
    if let Some(number) = label
        .strip_prefix("percent(")
        .and_then(|l| l.strip_suffix(')'))
    {
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        return digits(whole)
            && digits(fraction)
            && fraction.len() <= 8
            && whole.len() <= 3
            && number
                .parse::<f64>()
                .is_ok_and(|n| (0.0..=100.0).contains(&n));
    }
    label.starts_with(|c: char| c.is_ascii_alphabetic())
        && label
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-:./".contains(c))
}

fn first_with_args(sub: &Subgraph, items: &[Item]) -> Option<FieldId> {
    let mut found = None;
    fields::each_field(items, &mut |field, _| {
        if !sub.schema.fields[field].args.is_empty() {
            found.get_or_insert(field);
        }
    });
    found
}

fn leaves_not_external(
    sub: &Subgraph,
    items: &[Item],
    (under, lenient): (bool, bool),
    bad: &mut Vec<FieldId>,
) {
    for item in items {
        match item {
            Item::Field {
                field: Some(field),
                sub: inner,
                ..
            } => {
                let implementations = fields::implementations(&sub.schema, *field);
                let external = under
                    || sub.fields[*field].external
                    || (lenient && implementations.iter().any(|f| sub.fields[*f].external));
                if inner.is_empty() {
                    if !external {
                        bad.push(*field);
                    }
                } else {
                    leaves_not_external(sub, inner, (external, lenient), bad);
                }
            }
            Item::Field { .. } => {}
            Item::On { sub: inner, .. } => leaves_not_external(sub, inner, (under, lenient), bad),
        }
    }
}

/// A field set by names, in order of names, for comparing keys of different types.
pub(crate) fn names_of(sub: &Subgraph, items: &[Item]) -> Vec<String> {
    let mut out: Vec<String> = items
        .iter()
        .map(|item| match item {
            Item::Field {
                field, sub: inner, ..
            } => {
                let name = field.map_or("__typename", |f| sub.schema.field_name(f));
                if inner.is_empty() {
                    name.to_owned()
                } else {
                    format!("{name} {{ {} }}", names_of(sub, inner).join(" "))
                }
            }
            Item::On { ty, sub: inner } => format!(
                "... on {} {{ {} }}",
                sub.schema.type_name(*ty),
                names_of(sub, inner).join(" ")
            ),
        })
        .collect();
    out.sort();
    out
}
