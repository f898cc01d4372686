//! The directory: what its members must be, and where objects may lie. Spec: storage-layouts §6, §7.

use std::collections::HashMap;

use ninfer_codec::{Format, Layout, Plan, ResourceEncoding};
use serde::Serialize;

use crate::error::{Error, Place};
use crate::payload_offset;
use crate::tree::Tree;

/// Which model and which weights a file holds. Neither is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The model.
    pub model_id: String,
    /// The weights.
    pub weights_id: String,
}

/// The checked directory of a file: an identity, and objects by rising offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    identity: Identity,
    objects: Vec<Object>,
    payload_offset: u64,
}

/// One entry of the directory. Its offset is aligned and inside the file; its size is the encoded size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    name: String,
    kind: Kind,
    offset: u64,
    bytes: u64,
}

/// What an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tensor in one of the nine formats.
    Tensor {
        /// Its dimensions.
        shape: Vec<u64>,
        /// Its format, layout, and every plane.
        plan: Plan,
    },
    /// A byte string.
    Resource {
        /// How it is stored.
        encoding: ResourceEncoding,
    },
}

impl Directory {
    /// Returns which model and weights the file holds.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the objects, by rising offset. There is at least one.
    #[must_use]
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Returns where in the file the payloads begin; a multiple of 4096.
    #[must_use]
    pub fn payload_offset(&self) -> u64 {
        self.payload_offset
    }

    /// Returns where in the file an object of this directory begins.
    #[must_use]
    pub fn file_offset(&self, object: &Object) -> u64 {
        self.payload_offset + object.offset
    }

    /// Checks the text of a directory that stands in a file of `file_bytes` bytes.
    pub(crate) fn parse(json: &[u8], file_bytes: u64) -> Result<Self, Error> {
        let json_bytes = json.len() as u64;
        let payload_offset =
            payload_offset(json_bytes).ok_or(Error::DirectoryLength { json_bytes, file_bytes })?;
        let available = file_bytes.saturating_sub(payload_offset);
        let place = Place::Directory;
        let [identity, objects] = members(&place, Tree::parse(json)?, ["identity", "objects"])?;
        let identity = parse_identity(identity)?;
        let objects = match objects {
            Tree::List(objects) => objects,
            other => return Err(wrong_type(&place, "objects", "an array", &other)),
        };
        if objects.is_empty() {
            return Err(Error::Empty { place, member: "objects" });
        }
        let objects = objects
            .into_iter()
            .enumerate()
            .map(|(index, tree)| parse_object(index, tree))
            .collect::<Result<Vec<_>, _>>()?;
        check_names(&objects)?;
        check_places(&objects, available)?;
        Ok(Self { identity, objects, payload_offset })
    }
}

impl Object {
    /// Returns the name: not empty, and no other object has it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what the object is.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Returns the plan of a tensor.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        match &self.kind {
            Kind::Tensor { plan, .. } => Some(plan),
            Kind::Resource { .. } => None,
        }
    }

    /// Returns where the payload begins, counted from [`Directory::payload_offset`].
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the length of the payload.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn alignment(&self) -> u64 {
        match &self.kind {
            Kind::Tensor { plan, .. } => plan.alignment(),
            Kind::Resource { encoding } => encoding.alignment(),
        }
    }

    fn place(&self, index: usize) -> Place {
        Place::Object { index, name: self.name.clone() }
    }
}

fn check_names(objects: &[Object]) -> Result<(), Error> {
    let mut seen = HashMap::with_capacity(objects.len());
    for (second, object) in objects.iter().enumerate() {
        if let Some(first) = seen.insert(object.name(), second) {
            return Err(Error::DuplicateName { name: object.name.clone(), first, second });
        }
    }
    Ok(())
}

fn check_places(objects: &[Object], available: u64) -> Result<(), Error> {
    let mut previous_end = 0;
    for (index, object) in objects.iter().enumerate() {
        let (offset, bytes, alignment) = (object.offset, object.bytes, object.alignment());
        if !offset.is_multiple_of(alignment) {
            return Err(Error::Misaligned { place: object.place(index), offset, alignment });
        }
        if offset < previous_end {
            return Err(Error::Overlap { place: object.place(index), offset, previous_end });
        }
        previous_end = match offset.checked_add(bytes) {
            Some(end) if end <= available => end,
            _ => return Err(Error::OutsideFile { place: object.place(index), offset, bytes, available }),
        };
    }
    Ok(())
}

fn parse_identity(tree: Tree) -> Result<Identity, Error> {
    let place = Place::Identity;
    let [model_id, weights_id] = members(&place, tree, ["model_id", "weights_id"])?;
    Ok(Identity {
        model_id: nonempty(&place, "model_id", model_id)?,
        weights_id: nonempty(&place, "weights_id", weights_id)?,
    })
}

fn parse_object(index: usize, tree: Tree) -> Result<Object, Error> {
    let mut place = Place::Object { index, name: String::new() };
    // The kind says which members there must be; the name goes into errors.
    let mut kind = None;
    if let Tree::Members(list) = &tree {
        for (key, value) in list {
            match (key.as_str(), value) {
                ("kind", Tree::Text(text)) => kind = kind.or(Some(text.clone())),
                ("name", Tree::Text(text)) => place = Place::Object { index, name: text.clone() },
                ("kind", other) => return Err(wrong_type(&place, "kind", "a string", other)),
                _ => {}
            }
        }
    }
    match kind.as_deref() {
        Some("tensor") => parse_tensor(place, tree),
        Some("resource") => parse_resource(place, tree),
        Some(name) => Err(Error::UnknownName { place, member: "kind", name: name.into() }),
        None => match tree {
            Tree::Members(_) => Err(Error::MissingMember { place, member: "kind" }),
            other => Err(wrong_type(&place, "", "a JSON object", &other)),
        },
    }
}

fn parse_tensor(place: Place, tree: Tree) -> Result<Object, Error> {
    let [name, _, shape, format, layout, offset, bytes] =
        members(&place, tree, ["name", "kind", "shape", "format", "layout", "offset", "bytes"])?;
    let name = nonempty(&place, "name", name)?;
    let shape = match shape {
        Tree::List(list) => list
            .into_iter()
            .map(|dimension| unsigned(&place, "shape", dimension))
            .collect::<Result<Vec<_>, _>>()?,
        other => return Err(wrong_type(&place, "shape", "an array of positive integers", &other)),
    };
    let format = registered(&place, "format", format, |name| Format::from_name(name).ok())?;
    let layout = registered(&place, "layout", layout, |name| Layout::from_name(name).ok())?;
    let offset = unsigned(&place, "offset", offset)?;
    let bytes = unsigned(&place, "bytes", bytes)?;
    let plan = match Plan::new(format, layout, &shape) {
        Ok(plan) => plan,
        Err(reason) => return Err(Error::Plan { place, shape, reason }),
    };
    if bytes != plan.payload_bytes() {
        return Err(Error::ObjectBytes { place, expected: plan.payload_bytes(), actual: bytes });
    }
    Ok(Object { name, kind: Kind::Tensor { shape, plan }, offset, bytes })
}

fn parse_resource(place: Place, tree: Tree) -> Result<Object, Error> {
    let [name, _, encoding, offset, bytes] =
        members(&place, tree, ["name", "kind", "encoding", "offset", "bytes"])?;
    let name = nonempty(&place, "name", name)?;
    let encoding = registered(&place, "encoding", encoding, |name| ResourceEncoding::from_name(name).ok())?;
    let offset = unsigned(&place, "offset", offset)?;
    let bytes = unsigned(&place, "bytes", bytes)?;
    if bytes == 0 {
        return Err(Error::EmptyResource { place });
    }
    Ok(Object { name, kind: Kind::Resource { encoding }, offset, bytes })
}

/// Takes exactly the named members out of an object.
fn members<const N: usize>(place: &Place, tree: Tree, names: [&'static str; N]) -> Result<[Tree; N], Error> {
    let list = match tree {
        Tree::Members(list) => list,
        other => return Err(wrong_type(place, "", "a JSON object", &other)),
    };
    let mut slots: [Option<Tree>; N] = std::array::from_fn(|_| None);
    for (key, value) in list {
        let Some(slot) = names.iter().position(|name| *name == key) else {
            return Err(Error::UnknownMember { place: place.clone(), member: key });
        };
        if slots[slot].replace(value).is_some() {
            return Err(Error::DuplicateMember { place: place.clone(), member: names[slot] });
        }
    }
    if let Some(missing) = slots.iter().position(Option::is_none) {
        return Err(Error::MissingMember { place: place.clone(), member: names[missing] });
    }
    Ok(slots.map(|slot| slot.unwrap_or(Tree::Null)))
}

fn text(place: &Place, member: &'static str, tree: Tree) -> Result<String, Error> {
    match tree {
        Tree::Text(text) => Ok(text),
        other => Err(wrong_type(place, member, "a string", &other)),
    }
}

fn nonempty(place: &Place, member: &'static str, tree: Tree) -> Result<String, Error> {
    let text = text(place, member, tree)?;
    if text.is_empty() { Err(Error::Empty { place: place.clone(), member }) } else { Ok(text) }
}

fn registered<T>(
    place: &Place,
    member: &'static str,
    tree: Tree,
    find: impl Fn(&[u8]) -> Option<T>,
) -> Result<T, Error> {
    let name = text(place, member, tree)?;
    find(name.as_bytes()).ok_or_else(|| Error::UnknownName { place: place.clone(), member, name })
}

fn unsigned(place: &Place, member: &'static str, tree: Tree) -> Result<u64, Error> {
    match tree {
        Tree::Unsigned(number) => Ok(number),
        other => Err(wrong_type(place, member, "an unsigned 64-bit integer", &other)),
    }
}

fn wrong_type(place: &Place, member: &str, expected: &'static str, found: &Tree) -> Error {
    Error::WrongType { place: place.clone(), member: member.into(), expected, found: found.describe() }
}
