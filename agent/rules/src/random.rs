//! Generates random rules and requests for tests. All texts consist of few different letters, so that rules often
//! match.

use serde_json::{Map, Value, json};

use crate::field::{Field, FieldId};
use crate::ruleset::RuleSet;
use crate::test::bits_of;
use crate::values::Values;

const NUMBERS: &[&str] = &["1", "2", "11", "12", "21", "22"];

/// A generator of random numbers from a seed (SplitMix64).
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    pub(crate) fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    fn list<T>(&mut self, most: usize, mut item: impl FnMut(&mut Random) -> T) -> Vec<T> {
        (0..=self.below(most)).map(|_| item(self)).collect()
    }

    /// Returns a short text of few different letters, or sometimes a number.
    pub(crate) fn text(&mut self) -> String {
        if self.below(3) == 0 {
            return self.of(NUMBERS).to_owned();
        }
        let length = 1 + self.below(4);
        (0..length).map(|_| self.of(&["a", "b", "1", "2", "/"])).collect()
    }

    pub(crate) fn path(&mut self) -> String {
        format!("/{}", self.text().replace('/', "c"))
    }

    fn network(&mut self) -> String {
        let sign = self.of(&["", "", "!"]);
        format!(
            "{sign}{}",
            self.of(&["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3", "0.0.0.0/0", "11.0.0.0/8"])
        )
    }

    fn form(&mut self, path: bool, depth: usize) -> Value {
        let text = |random: &mut Random| if path { random.path() } else { random.text() };
        match self.below(if depth > 0 { 12 } else { 9 }) {
            0 | 1 => json!({"exact": text(self)}),
            2 => json!({"prefix": self.list(2, text)}),
            3 => json!({"suffix": self.text().replace('/', "c")}),
            4 => json!({"contains": self.text().replace('/', "c")}),
            5 => json!({"regex": self.of(&["a+b", "^/?a", "[ab]2$", "^..$", "(a|b)1", "(?i)AB", "1", "x*"])}),
            6 | 7 => json!(format!("{} {}", self.of(&[">", ">=", "<", "<=", "=", "!="]), self.of(NUMBERS))),
            8 => json!({"present": self.below(2) == 0}),
            9 => Value::Array(self.list(2, |random| random.form(path, depth - 1))),
            10 => match self.form(path, 0) {
                Value::Object(form) if form.contains_key("present") => Value::Object(form),
                form => json!({"not": form}),
            },
            _ => json!({"prefix": text(self), "not": {"suffix": self.of(&["a", "b", "1"])}}),
        }
    }

    fn condition(&mut self) -> Value {
        let mut fields = Map::new();
        for _ in 0..=self.below(3) {
            let (name, form) = match self.below(8) {
                0 | 1 => ("path", self.form(true, 1)),
                2 => ("host", json!(self.of(&["a.b", "*.b", "*.a.b", "c"]))),
                3 => ("query", json!({"q": self.form(false, 1)})),
                4 => ("source", Value::Array(self.list(2, |random| json!(random.network())))),
                5 => ("json", json!({"a": self.form(false, 1)})),
                6 => ("xml", json!({"a": self.form(false, 1), "b:1": self.form(false, 1)})),
                _ => ("xml", json!({self.of(&["a", "b:1"]): self.form(false, 1)})),
            };
            fields.insert(name.into(), form);
        }
        Value::Object(fields)
    }

    pub(crate) fn rules(&mut self) -> Value {
        let count = 1 + self.below(12);
        let action = |random: &mut Random, rule: usize| match random.below(8) {
            0 => json!({"refuse": 403}),
            1 if rule + 1 < count => json!({"goto": format!("r{}", rule + 1 + random.below(count - rule - 1))}),
            _ => json!({"to": format!("g{rule}")}),
        };
        let rules = (0..count).map(|rule| {
            let mut item = action(self, rule);
            item["name"] = json!(format!("r{rule}"));
            item["match"] = Value::Array(self.list(2, Random::condition));
            if self.below(6) == 0 {
                item["else"] = action(self, rule);
            }
            item
        });
        Value::Array(rules.collect())
    }
}

pub(crate) fn id(rules: &RuleSet, field: &Field) -> Option<FieldId> {
    rules.fields.iter().position(|other| other == field).map(|id| FieldId(id as u32))
}

/// Returns random values of the fields in the head of a request.
pub(crate) fn head(rules: &RuleSet, random: &mut Random) -> Values {
    let mut values = Values::default();
    let address = bits_of(random.of(&["10.1.2.3", "10.1.2.4", "10.2.0.0", "11.1.1.1", "1::"]).parse().unwrap());
    let mut push = |field: Field, text: &[u8]| {
        if let Some(field) = id(rules, &field) {
            values.push(field, text);
        }
    };
    push(Field::Path, random.path().as_bytes());
    push(Field::Host, random.of(&["a.b", "x.a.b", "b", "c"]).as_bytes());
    push(Field::Source, &address.to_be_bytes());
    for _ in 0..random.below(3) {
        push(Field::Query("q".into()), random.text().as_bytes());
    }
    values
}
