//! The directory's JSON as a tree that keeps every member, duplicates included. Private: `directory` gives the
//! tree its meaning and refuses what the schema does not know.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::error::Error;

/// Directory, `objects`, one object, `shape`.
const DEEPEST: usize = 4;

/// A JSON value. Members keep their order; keys are unescaped, so two spellings of one key are equal.
#[derive(Debug)]
pub(crate) enum Tree {
    Null,
    Bool,
    Unsigned(u64),
    /// Any other number, as text.
    Number(String),
    Text(String),
    List(Vec<Tree>),
    Members(Vec<(String, Tree)>),
}

impl Tree {
    /// Parses the directory's text.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, Error> {
        if json.starts_with("\u{feff}".as_bytes()) {
            return Err(Error::ByteOrderMark);
        }
        if let Some(offset) = json.iter().position(|&byte| byte == 0) {
            return Err(Error::NulByte { offset });
        }
        let text =
            std::str::from_utf8(json).map_err(|error| Error::NotUtf8 { offset: error.valid_up_to() })?;
        if let Some(offset) = lone_surrogate(json) {
            return Err(Error::LoneSurrogate { offset });
        }
        let too_deep = Cell::new(false);
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let seed = Seed { levels: DEEPEST, too_deep: &too_deep };
        seed.deserialize(&mut deserializer).and_then(|tree| deserializer.end().map(|()| tree)).map_err(
            |error| match too_deep.get() {
                true => Error::TooDeep { line: error.line(), column: error.column() },
                false => Error::Syntax { message: error.to_string() },
            },
        )
    }

    /// Says what the value is, for an error.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Null => "null".into(),
            Self::Bool => "a boolean".into(),
            Self::Unsigned(number) => number.to_string(),
            Self::Number(number) => number.clone(),
            Self::Text(text) => format!("{text:?}"),
            Self::List(_) => "an array".into(),
            Self::Members(_) => "an object".into(),
        }
    }
}

/// Finds the first escape of half a surrogate pair. Backslashes stand in strings only, where each begins an escape.
fn lone_surrogate(json: &[u8]) -> Option<usize> {
    let unit = |at: usize| match json.get(at..at + 6)? {
        [b'\\', b'u', digits @ ..] => u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok(),
        _ => None,
    };
    let mut at = 0;
    while let Some(ahead) = json.get(at..)?.iter().position(|&byte| byte == b'\\') {
        at += ahead;
        at += match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => return Some(at),
            _ => 2,
        };
    }
    None
}

/// Reads a value in which arrays and objects may nest `levels` deep.
#[derive(Clone, Copy)]
struct Seed<'c> {
    levels: usize,
    too_deep: &'c Cell<bool>,
}

impl Seed<'_> {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        match self.levels.checked_sub(1) {
            Some(levels) => Ok(Self { levels, ..self }),
            None => {
                self.too_deep.set(true);
                Err(E::custom("nested too deep"))
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Tree;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Tree, E> {
        Ok(Tree::Bool)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Tree, E> {
        Ok(Tree::Unsigned(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Tree, E> {
        Ok(Tree::Number(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Tree, E> {
        Ok(Tree::Number(format!("{number:?}")))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let seed = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(seed)? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Tree, A::Error> {
        let seed = self.deeper()?;
        let mut list = Vec::new();
        while let Some(key) = members.next_key::<String>()? {
            list.push((key, members.next_value_seed(seed)?));
        }
        Ok(Tree::Members(list))
    }
}
