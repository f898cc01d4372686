//! A safetensors checkpoint: one file, or shards that an index names. Only headers are read here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use safetensors::Dtype;
use serde::Deserialize;

use crate::failure::{Failure, Outcome, note};
use crate::opened::Mapped;
use crate::{header, json};

/// The mapped files and where each tensor lies in them, by name.
#[derive(Debug, Default)]
pub struct Checkpoint {
    pub files: Vec<Mapped>,
    /// The index that names the files, where one was read.
    pub index: Option<PathBuf>,
    tensors: BTreeMap<String, Place>,
}

#[derive(Debug)]
struct Place {
    file: usize,
    dtype: Dtype,
    shape: Vec<u64>,
    begin: usize,
    end: usize,
}

/// One tensor of a checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct SourceTensor<'c> {
    pub name: &'c str,
    pub dtype: Dtype,
    pub shape: &'c [u64],
    pub bytes: &'c [u8],
    /// Which file of the checkpoint it lies in, and where.
    pub file: usize,
    pub begin: usize,
}

/// What a `model.safetensors.index.json` holds.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Checkpoint {
    /// Opens a `.safetensors` file, an index, or a folder that has an index or `.safetensors` files.
    pub fn open(path: &Path) -> Outcome<Self> {
        if path.is_dir() {
            return Self::open_folder(path);
        }
        if path.extension().is_some_and(|extension| extension == "json") {
            return Self::open_index(path);
        }
        let mut checkpoint = Self::default();
        checkpoint.add_file(path, |_| true)?;
        Ok(checkpoint)
    }

    fn open_folder(folder: &Path) -> Outcome<Self> {
        let entries = fs::read_dir(folder).map_err(|error| Failure::io("read", folder, error))?;
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(|error| Failure::io("read", folder, error))?.path());
        }
        paths.sort();
        let with_end = |end: &str| -> Vec<&PathBuf> {
            paths.iter().filter(|path| path.to_string_lossy().ends_with(end)).collect()
        };
        match with_end(".safetensors.index.json")[..] {
            [] => {}
            [index] => return Self::open_index(index),
            [first, second, ..] => {
                return Err(Failure::refused(format!(
                    "{} has several indexes, {} and {} among them: name the one to pack",
                    folder.display(),
                    first.display(),
                    second.display()
                )));
            }
        }
        let mut checkpoint = Self::default();
        for path in with_end(".safetensors") {
            checkpoint.add_file(path, |_| true)?;
        }
        if checkpoint.files.is_empty() {
            let message =
                "has neither a .safetensors.index.json nor a .safetensors file: name another folder";
            return Err(Failure::refused(format!("{} {message}", folder.display())));
        }
        Ok(checkpoint)
    }

    fn open_index(path: &Path) -> Outcome<Self> {
        let text = Mapped::open(path)?;
        let index = json::check_keys(&text).and_then(|()| serde_json::from_slice::<Index>(&text));
        let index = index.map_err(|error| {
            Failure::refused(format!("{} is no safetensors index: {error}; fetch it again", path.display()))
        })?;
        let mut by_file = BTreeMap::<&str, Vec<&str>>::new();
        for (name, file) in &index.weight_map {
            by_file.entry(file).or_default().push(name);
        }
        let mut checkpoint = Self { index: Some(path.into()), ..Self::default() };
        for (file, names) in by_file {
            if !matches!(Path::new(file).components().collect::<Vec<_>>()[..], [Component::Normal(_)]) {
                return Err(Failure::refused(format!(
                    "{} names {file:?}: shards lie beside their index, with plain names",
                    path.display()
                )));
            }
            let shard = path.with_file_name(file);
            let left_out = checkpoint
                .add_file(&shard, |name| index.weight_map.get(name).is_some_and(|of| of == file))?;
            if left_out > 0 {
                note(format!(
                    "{}: {left_out} tensors are not in the index and are left out",
                    shard.display()
                ));
            }
            if let Some(missing) = names.into_iter().find(|name| !checkpoint.tensors.contains_key(*name)) {
                return Err(Failure::refused(format!(
                    "{} does not hold {missing:?}, which {} says it does: fetch the shard again",
                    shard.display(),
                    path.display()
                )));
            }
        }
        Ok(checkpoint)
    }

    /// Adds the tensors of a file whose names are wanted; returns how many are not.
    fn add_file(&mut self, path: &Path, wanted: impl Fn(&str) -> bool) -> Outcome<usize> {
        let file = Mapped::open(path)?;
        let (header_bytes, metadata) = header::read(&file)?;
        let data = header::LENGTH_BYTES + header_bytes;
        let mut left_out = 0;
        for (name, info) in metadata.tensors() {
            if !wanted(&name) {
                left_out += 1;
                continue;
            }
            let place = Place {
                file: self.files.len(),
                dtype: info.dtype,
                shape: info.shape.iter().map(|&dimension| dimension as u64).collect(),
                begin: data + info.data_offsets.0,
                end: data + info.data_offsets.1,
            };
            if let Some(other) = self.tensors.insert(name.clone(), place) {
                return Err(Failure::refused(format!(
                    "tensor {name:?} is both in {} and in {}: remove one of the files",
                    self.files[other.file].path().display(),
                    path.display()
                )));
            }
        }
        self.files.push(file);
        Ok(left_out)
    }

    /// All tensors, by name.
    pub fn tensors(&self) -> impl Iterator<Item = SourceTensor<'_>> {
        self.tensors.iter().map(|(name, place)| self.at(name, place))
    }

    pub fn tensor(&self, name: &str) -> Option<SourceTensor<'_>> {
        self.tensors.get_key_value(name).map(|(name, place)| self.at(name, place))
    }

    fn at<'c>(&'c self, name: &'c str, place: &'c Place) -> SourceTensor<'c> {
        let bytes = &self.files[place.file][place.begin..place.end];
        let Place { file, begin, .. } = *place;
        SourceTensor { name, dtype: place.dtype, shape: &place.shape, bytes, file, begin }
    }
}
