//! Shapes as tests write them: `Book{title: string, tags: [any]} | Film{}`, `number`, `bool`, `string`, `any`.

use ogive_mapping::{FieldShape, ObjectShape, Shape, ShapeId, Shapes};

pub(crate) fn read(text: &str, shapes: &mut Shapes) -> ShapeId {
    let mut reader = Reader { text, shapes };
    let shape = reader.alternatives();
    assert_eq!(reader.text.trim(), "", "{text}");
    shape
}

struct Reader<'t> {
    text: &'t str,
    shapes: &'t mut Shapes,
}

impl<'t> Reader<'t> {
    fn alternatives(&mut self) -> ShapeId {
        let mut all = vec![self.one()];
        while self.take('|') {
            all.push(self.one());
        }
        match all.as_slice() {
            [one] => *one,
            _ => self.shapes.add(Shape::OneOf(all)),
        }
    }
    fn one(&mut self) -> ShapeId {
        if self.take('[') {
            let item = self.alternatives();
            assert!(self.take(']'));
            return self.shapes.add(Shape::List(item));
        }
        let name = self.word();
        if !self.take('{') {
            return match name {
                "any" => Shapes::UNKNOWN,
                "bool" => Shapes::BOOL,
                "number" => Shapes::NUMBER,
                "string" => Shapes::STRING,
                "scalar" => Shapes::SCALAR,
                other => panic!("unknown shape {other}"),
            };
        }
        let mut fields = Vec::new();
        while !self.take('}') {
            let name = self.word();
            assert!(self.take(':'));
            let shape = self.alternatives();
            fields.push(FieldShape {
                name: name.into(),
                shape,
                span: None,
            });
            self.take(',');
        }
        self.shapes.add(Shape::Object(ObjectShape {
            name: (!name.is_empty()).then(|| name.into()),
            fields,
            open: false,
        }))
    }
    fn word(&mut self) -> &'t str {
        self.text = self.text.trim_start();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = self.text.find(|c| !is_word(c)).unwrap_or(self.text.len());
        let (word, rest) = self.text.split_at(end);
        self.text = rest;
        word
    }
    fn take(&mut self, wanted: char) -> bool {
        let rest = self.text.trim_start().strip_prefix(wanted);
        if let Some(rest) = rest {
            self.text = rest;
        }
        rest.is_some()
    }
}
