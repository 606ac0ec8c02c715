//! Requests for entities, taken apart: each representation has an entry of its own, and a request asks only for those that
//! are missing.
//!
//! A request is taken apart only in the form in which the gateway writes it: an operation whose fields are all
//! `_entities(representations:$variable){…}`. Any other request is one entry as a whole.

use std::ops::Range;

use ogive_json::{Kind, Node, Tree};

use crate::{
    Content,
    entity_query::{EntityField, entity_fields},
};

/// Most objects and lists open at a time in a request or an answer that is taken apart.
pub const DEPTH_MAX: u32 = 128;

/// A request for entities.
#[derive(Debug)]
pub struct EntityRequest<'a> {
    body: &'a [u8],
    extensions: &'a [u8],
    lookups: Vec<EntityLookup<'a>>,
}

/// One `_entities` field of a request.
#[derive(Debug)]
struct EntityLookup<'a> {
    response_key: String,
    selection: String,
    /// The variables that the selection uses, as JSON, in the order in which it names them.
    variables: Vec<u8>,
    /// Where the list of representations stands in the body.
    list: Range<usize>,
    representations: Vec<&'a [u8]>,
}

/// One representation of a request.
#[derive(Clone, Copy, Debug)]
pub struct Representation<'r> {
    /// What its entry is known by.
    pub content: Content<'r>,
    /// The representation, as JSON.
    pub json: &'r [u8],
}

impl<'a> EntityRequest<'a> {
    /// Takes a request apart; `None` if it asks for anything but entities.
    pub fn read(body: &'a [u8]) -> Option<Self> {
        let tree = Tree::read(body, DEPTH_MAX).ok()?;
        let (mut query, mut variables, mut extensions) = (None, None, None);
        let mut name: &[u8] = b"";
        for (key, value) in tree.root().members() {
            let is_first = match () {
                () if key.is("query") => query.replace(value.string()?).is_none(),
                () if key.is("variables") => variables.replace(value).is_none(),
                () if key.is("extensions") => extensions.replace(value.range()).is_none(),
                () if key.is("operationName") => {
                    name = &body[value.range()];
                    true
                }
                () => false,
            };
            if !is_first {
                return None;
            }
        }
        let (query, variables) = (query?, variables?);
        let fields = entity_fields(&query)?;
        let lookups = fields
            .iter()
            .map(|field| EntityLookup::read(body, field, variables, name));
        Some(EntityRequest {
            body,
            extensions: extensions.map_or(b"", |range| &body[range]),
            lookups: lookups.collect::<Option<_>>()?,
        })
    }

    /// The `extensions` of the request, as JSON; empty if it has none.
    pub fn extensions(&self) -> &'a [u8] {
        self.extensions
    }

    /// All representations, in the order of the request.
    pub fn representations(&self) -> impl Iterator<Item = Representation<'_>> {
        self.lookups.iter().flat_map(|lookup| {
            lookup.representations.iter().map(|json| Representation {
                content: Content::Entity {
                    selection: lookup.selection.as_bytes(),
                    variables: &lookup.variables,
                    representation: json,
                },
                json,
            })
        })
    }

    /// The body of a request for some of the representations. `wanted`: by the order of
    /// [`representations`](EntityRequest::representations).
    pub fn body_of(&self, wanted: &[bool]) -> Vec<u8> {
        let mut lists: Vec<(Range<usize>, Vec<u8>)> = Vec::with_capacity(self.lookups.len());
        let mut at = 0;
        for lookup in &self.lookups {
            let mut list = vec![b'['];
            for json in &lookup.representations {
                if wanted.get(at).copied().unwrap_or(false) {
                    push_item(&mut list, json);
                }
                at += 1;
            }
            list.push(b']');
            lists.push((lookup.list.clone(), list));
        }
        replaced(self.body, lists)
    }

    /// Takes the answer to a request for the wanted representations apart. `None` if it has another form: then nothing of
    /// it can be told apart.
    pub fn read_answer<'b>(&self, wanted: &[bool], body: &'b [u8]) -> Option<EntityAnswer<'b>> {
        let tree = Tree::read(body, DEPTH_MAX).ok()?;
        let data = tree.root().get("data")?;
        let mut entities = Vec::with_capacity(wanted.len());
        let mut at = 0;
        for lookup in &self.lookups {
            let own = wanted.get(at..at + lookup.representations.len())?;
            at += own.len();
            let items = data.get(&lookup.response_key);
            let mut items = items.into_iter().flat_map(Node::items);
            for is_wanted in own {
                let item = if *is_wanted {
                    Some(items.next()?)
                } else {
                    None
                };
                entities.push(item.map(|item| &body[item.range()]));
            }
            if items.next().is_some() {
                return None;
            }
        }
        let errors = match tree.root().get("errors") {
            Some(errors) if errors.kind() == Kind::Array => {
                Some(self.moved_errors(errors, wanted, body))
            }
            Some(errors) if !errors.is_null() => return None,
            _ => None,
        };
        let extensions = tree.root().get("extensions");
        Some(EntityAnswer {
            entities,
            errors,
            extensions: extensions.map(|extensions| &body[extensions.range()]),
            tags: tags_of(extensions),
        })
    }

    /// The errors of an answer, with the places that their entities have in the whole request.
    fn moved_errors(&self, errors: Node<'_>, wanted: &[bool], body: &[u8]) -> Vec<Vec<u8>> {
        let places = self.places(wanted);
        let moved = |error: Node<'_>| {
            let range = error.range();
            let moved = place_of(error, &places).map(|(index, place)| {
                let own = index.start - range.start..index.end - range.start;
                (own, place.to_string().into_bytes())
            });
            replaced(&body[range], moved.into_iter().collect())
        };
        errors.items().map(moved).collect()
    }

    /// Where the wanted entities of each field stand among all of the field.
    fn places(&self, wanted: &[bool]) -> Vec<FieldPlaces<'_>> {
        let mut wanted = wanted.iter();
        let fields = self.lookups.iter().map(|lookup| {
            let own = wanted.by_ref().take(lookup.representations.len());
            let asked = own.enumerate().filter(|(_, is_wanted)| **is_wanted);
            FieldPlaces {
                response_key: &lookup.response_key,
                places: asked.map(|(place, _)| place).collect(),
            }
        });
        fields.collect()
    }

    /// The answer to the whole request. `entities`: by the order of [`representations`](EntityRequest::representations).
    pub fn merge<'e>(
        &self,
        entities: impl IntoIterator<Item = &'e [u8]>,
        errors: Option<&[Vec<u8>]>,
        extensions: Option<&[u8]>,
    ) -> Vec<u8> {
        let mut entities = entities.into_iter();
        let mut out = b"{\"data\":{".to_vec();
        for (at, lookup) in self.lookups.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            ogive_json::write_string(&mut out, &lookup.response_key);
            out.extend_from_slice(b":[");
            let own = entities.by_ref().take(lookup.representations.len());
            for entity in own {
                push_item(&mut out, entity);
            }
            out.push(b']');
        }
        out.push(b'}');
        if let Some(errors) = errors {
            out.extend_from_slice(b",\"errors\":[");
            for error in errors {
                push_item(&mut out, error);
            }
            out.push(b']');
        }
        if let Some(extensions) = extensions {
            out.extend_from_slice(b",\"extensions\":");
            out.extend_from_slice(extensions);
        }
        out.push(b'}');
        out
    }
}

impl<'a> EntityLookup<'a> {
    fn read(
        body: &'a [u8],
        field: &EntityField<'_>,
        values: Node<'_>,
        operation_name: &[u8],
    ) -> Option<Self> {
        let list = values.get(field.variable)?;
        if list.kind() != Kind::Array {
            return None;
        }
        // An answer may depend on the name, which is sent if the operator wants it.
        let mut variables = operation_name.to_vec();
        for name in &field.used {
            variables.push(b'$');
            variables.extend_from_slice(name.as_bytes());
            variables.push(b':');
            if let Some(value) = values.get(name) {
                variables.extend_from_slice(value.raw());
            }
        }
        Some(EntityLookup {
            response_key: field.response_key.to_owned(),
            selection: field.selection.to_owned(),
            variables,
            list: list.range(),
            representations: list.items().map(|item| &body[item.range()]).collect(),
        })
    }
}

/// The answer to a request for some representations, taken apart.
#[derive(Debug)]
pub struct EntityAnswer<'b> {
    /// By the order of the request; `None` where an entity was not asked for.
    pub entities: Vec<Option<&'b [u8]>>,
    /// The errors, if there is a list of them, each with a path into the answer to the whole request.
    pub errors: Option<Vec<Vec<u8>>>,
    /// `extensions`, if there are some.
    pub extensions: Option<&'b [u8]>,
    /// The tags of the entities that were asked for, in order: `extensions.apolloEntityCacheTags`.
    pub tags: Vec<Vec<String>>,
}

/// The wanted entities of one `_entities` field: for each, where it stands among all entities of the field.
struct FieldPlaces<'l> {
    response_key: &'l str,
    places: Vec<usize>,
}

/// The index in the path of an error, where it is written, and the place of its entity in the whole request.
fn place_of(error: Node<'_>, places: &[FieldPlaces<'_>]) -> Option<(Range<usize>, usize)> {
    let mut path = error.get("path")?.items();
    let (key, index) = (path.next()?.string()?, path.next()?);
    let field = places.iter().find(|field| field.response_key == key)?;
    let asked: usize = index.number()?.parse().ok()?;
    Some((index.range(), *field.places.get(asked)?))
}

/// The tags of the entities of an answer.
fn tags_of(extensions: Option<Node<'_>>) -> Vec<Vec<String>> {
    let lists = extensions.and_then(|extensions| extensions.get("apolloEntityCacheTags"));
    let lists = lists.into_iter().flat_map(Node::items);
    lists.map(texts).collect()
}

/// The tags of an answer as a whole: `extensions.apolloCacheTags`.
pub fn tags_of_answer(answer: Node<'_>) -> Vec<String> {
    let extensions = answer.get("extensions");
    let tags = extensions.and_then(|extensions| extensions.get("apolloCacheTags"));
    tags.map(texts).unwrap_or_default()
}

fn texts(list: Node<'_>) -> Vec<String> {
    let texts = list.items().filter_map(Node::string);
    texts.map(|text| text.into_owned()).collect()
}

/// The type that a representation is of.
pub fn type_of(representation: &[u8]) -> Option<String> {
    let tree = Tree::read(representation, DEPTH_MAX).ok()?;
    let name = tree.root().get("__typename")?.string()?;
    Some(name.into_owned())
}

/// Adds an item to a list that is open.
fn push_item(list: &mut Vec<u8>, item: &[u8]) {
    if list.last() != Some(&b'[') {
        list.push(b',');
    }
    list.extend_from_slice(item);
}

/// A text with parts of it replaced.
fn replaced(text: &[u8], mut parts: Vec<(Range<usize>, Vec<u8>)>) -> Vec<u8> {
    parts.sort_by_key(|(range, _)| range.start);
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for (range, part) in parts {
        out.extend_from_slice(&text[from..range.start]);
        out.extend_from_slice(&part);
        from = range.end;
    }
    out.extend_from_slice(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"query":"query($r:[_Any!]!){_entities(representations:$r){...on A{b}}}","variables":{"r":[{"id":1},{"id":2},{"id":3}]}}"#;

    /// An empty list before another one made the answer invalid JSON.
    #[test]
    fn errors_of_answers_have_their_places_and_merge_into_one_list() {
        let asked = EntityRequest::read(BODY).unwrap();
        let read = |wanted: [bool; 3], body| asked.read_answer(&wanted, body);
        let none = read(
            [true, false, false],
            br#"{"data":{"_entities":[1]},"errors":[ ]}"#,
        );
        let mut errors = none.unwrap().errors.unwrap();
        let one = br#"{"data":{"_entities":[null,3]},"errors":[{"path":["_entities",1,"b"]},{"message":"a"}]}"#;
        errors.extend(read([false, true, true], one).unwrap().errors.unwrap());
        let merged = asked.merge([&b"1"[..], b"null", b"3"], Some(&errors), None);
        assert_eq!(
            String::from_utf8(merged).unwrap(),
            r#"{"data":{"_entities":[1,null,3]},"errors":[{"path":["_entities",2,"b"]},{"message":"a"}]}"#
        );
        let text = br#"{"data":{"_entities":[1]},"errors":"no list"}"#;
        assert!(read([true, false, false], text).is_none());
    }
}
