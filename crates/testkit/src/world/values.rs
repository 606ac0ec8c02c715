//! Values of fields: what is true, and what subgraphs say of lists whose members they dispute.

use std::sync::atomic::Ordering;

use serde_json::{Map, Value as Json};

use super::{
    FAULT, Facts, ON_THE_WAY, Object, POOL, UNKNOWN, Value, World,
    arguments::{canonical_args, number},
    partial::doubt,
};
use crate::{
    graph::{FieldModel, Kind, Sub, Ty, clean},
    rng::{hash_texts, mix},
};

impl World {
    /// What is true, or, of a list whose members are disputed, what is said by the one who is asked. The monolith repeats
    /// that.
    pub(super) fn value(
        &self,
        at: Option<Sub>,
        object: &Object,
        field: &FieldModel,
        args: &Map<String, Json>,
        required: Option<&Json>,
    ) -> Value {
        let facts = self.facts.get(&*object.ty).and_then(|f| f.get(&field.name));
        let Some(facts) = facts.filter(|facts| !facts.disputed.is_empty()) else {
            return self.truth(object, field, args, required);
        };
        let hash = self.hash(object, field, args, required, 0);
        let domain = match at {
            Some(sub) => {
                let own = facts.disputed.iter().find(|(s, _)| *s == sub);
                let Some((_, domain)) = own else {
                    let text = format!("{}.{} is asked of the wrong one", object.ty, field.name);
                    return Value::Error(text);
                };
                self.lock().entry(hash).or_default().insert(domain.clone());
                domain.clone()
            }
            None => {
                let asked = self.lock();
                let said = asked.get(&hash).and_then(|domains| domains.first());
                said.unwrap_or(&facts.domain).clone()
            }
        };
        let mut value = self.produce(&facts.ty, &domain, hash);
        if at.is_none() {
            let is_certain = |name: &str| {
                let mut all = facts.disputed.iter();
                all.all(|(_, known)| known.iter().any(|k| k == name))
            };
            doubt(&mut value, &is_certain);
        }
        value
    }

    /// What is true, whoever is asked.
    pub(super) fn truth(
        &self,
        object: &Object,
        field: &FieldModel,
        args: &Map<String, Json>,
        required: Option<&Json>,
    ) -> Value {
        let Some(facts) = self.facts.get(&*object.ty).and_then(|f| f.get(&field.name)) else {
            return Value::Null;
        };
        let entity = self.model.is_entity(&object.ty);
        if facts.partial && object.identity == UNKNOWN {
            return Value::Null;
        }
        if let Some(divisor) = facts.coded.filter(|_| entity) {
            return self.coded(object, field, facts, divisor);
        }
        let count = if &*object.ty == "Mutation" {
            self.mutations.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            0
        };
        let hash = self.hash(object, field, args, required, count);
        let faults = if facts.on_the_way {
            self.faults_per_mille * ON_THE_WAY
        } else {
            self.faults_per_mille
        };
        if !facts.safe && mix(hash ^ 0xfa) % 1000 < faults {
            return Value::Error(format!("{}.{} {FAULT}", object.ty, field.name));
        }
        self.produce(&facts.ty, &facts.domain, hash)
    }

    pub(super) fn hash(
        &self,
        object: &Object,
        field: &FieldModel,
        args: &Map<String, Json>,
        required: Option<&Json>,
        count: u64,
    ) -> u64 {
        let hash = hash_texts(
            self.seed ^ mix(object.identity) ^ mix(count << 32),
            &[
                &object.ty,
                &field.name,
                &canonical_args(&self.model, &field.args, args),
                &required.map(ToString::to_string).unwrap_or_default(),
            ],
        );
        // The type takes part so that hashes of different shapes do not line up.
        mix(hash)
    }

    /// A key member: a leaf that spells the identity, or an object that has the same identity.
    pub(super) fn coded(
        &self,
        object: &Object,
        field: &FieldModel,
        facts: &Facts,
        divisor: u64,
    ) -> Value {
        let number = object.identity / divisor;
        // Either of the two may be null, never both.
        if let Some(spare) = clean::SPARE_KEYS.iter().position(|k| *k == field.name)
            && object.identity % 3 == spare as u64
        {
            return Value::Null;
        }
        let one = |index: u64| {
            if let Some(child) = facts.domain.first() {
                return Value::Object(Object {
                    ty: child.as_str().into(),
                    identity: if self.model.is_entity(child) {
                        (object.identity + index) % self.pool(child)
                    } else {
                        hash_texts(
                            self.seed ^ object.identity ^ mix(index),
                            &[&object.ty, &field.name],
                        )
                    },
                    representation: None,
                    provided: None,
                    uncertain: false,
                });
            }
            Value::Leaf(match facts.ty.name() {
                "Int" => Json::from(1000 + number + 100 * index),
                _ if index > 0 => {
                    Json::from(format!("{}-{}-{number}.{index}", object.ty, field.name))
                }
                _ => Json::from(format!("{}-{}-{number}", object.ty, field.name)),
            })
        };
        if facts.ty.is_list() {
            return Value::List((0..=object.identity % 2).map(one).collect());
        }
        one(0)
    }

    /// Instances of an entity type.
    pub(super) fn pool(&self, name: &str) -> u64 {
        match self.model.ty(name) {
            Some(ty) if ty.is_single() => 1,
            _ => POOL,
        }
    }

    pub(super) fn produce(&self, ty: &Ty, domain: &[String], hash: u64) -> Value {
        let nullable = !ty.is_non_null();
        if nullable && mix(hash ^ 0xa11) % 100 < 9 {
            return Value::Null;
        }
        match ty.nullable() {
            Ty::List(inner) => {
                let length = [0, 1, 1, 2, 2, 2, 3][(mix(hash ^ 0x115) % 7) as usize];
                Value::List(
                    (0..length)
                        .map(|i| self.produce(inner, domain, mix(hash ^ mix(i + 1))))
                        .collect(),
                )
            }
            Ty::Named(name) => self.named(name, domain, hash, nullable),
            Ty::NonNull(_) => Value::Null,
        }
    }

    pub(super) fn named(&self, name: &str, domain: &[String], hash: u64, nullable: bool) -> Value {
        let text = || format!("{name}#{:08x}", hash >> 32);
        Value::Leaf(match name {
            "Int" => Json::from((hash >> 32) as i32),
            "Float" => {
                number(["0.5", "1e3", "-2.50", "100", "3.0", "6.02e23"][(hash % 6) as usize])
            }
            "Boolean" => Json::from(hash & 16 == 0),
            "ID" => Json::from(text()),
            "String" => Json::from(match hash % 5 {
                0 => format!("\"{}\" \\ \n\u{e9}\u{1f600}", text()),
                _ => text(),
            }),
            _ => {
                let picked = if domain.is_empty() {
                    None
                } else {
                    domain.get((mix(hash) % domain.len() as u64) as usize)
                };
                return match (self.model.kind(name), picked) {
                    (Kind::Enum, Some(value)) => Value::Leaf(Json::from(value.as_str())),
                    (Kind::Scalar, _) => Value::Leaf(match hash % 4 {
                        0 => number("12345678901234567890123"),
                        1 => number("1.0"),
                        2 => serde_json::json!({"k": [1, null, {"z": text()}], "a": {}}),
                        _ => Json::from(text()),
                    }),
                    (_, Some(concrete)) => Value::Object(Object {
                        ty: concrete.as_str().into(),
                        identity: if concrete == "Query" {
                            0
                        } else if self.model.is_entity(concrete) {
                            hash % self.pool(concrete)
                        } else {
                            hash
                        },
                        representation: None,
                        provided: None,
                        uncertain: false,
                    }),
                    (_, None) if nullable => Value::Null,
                    (_, None) => Value::Error(format!("no data for {name}")),
                };
            }
        })
    }
}
