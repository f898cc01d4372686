//! The conversion report, a JSON file beside the artifact. The same conversion gives the same bytes.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Outcome};
use crate::output::{self, OutputFile};
use crate::progress;

/// The value of `schema`.
pub const SCHEMA: &str = "ninfer-report/1";

#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    pub schema: String,
    /// Name and version of the tool.
    pub tool: String,
    pub model_id: String,
    pub weights_id: String,
    pub artifact: FileEntry,
    pub sources: Vec<FileEntry>,
    /// In the order of the artifact.
    pub objects: Vec<ObjectEntry>,
}

/// A file by its name, without its folder.
#[derive(Debug, Serialize, Deserialize)]
pub struct FileEntry {
    pub file: String,
    pub bytes: u64,
    pub sha256: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct ObjectEntry {
    pub name: String,
    /// The tensors it comes from, in the order of its rows; the file of a resource.
    pub sources: Vec<SourceEntry>,
    /// The rule that decided.
    pub rule: String,
    /// `MAXABS_F16_RECIP_RNE_V1`, `copied` word for word, or `exact` values in another type.
    pub encoder: String,
    pub shape: Vec<u64>,
    /// A numeric format, or the encoding of a resource.
    pub format: String,
    pub layout: Option<String>,
    pub offset: u64,
    pub bytes: u64,
    pub bits_per_weight: Option<f64>,
    pub sha256: String,
    /// Present where values were quantized.
    pub error: Option<ErrorEntry>,
    /// Present where there are scales.
    pub groups: Option<GroupEntry>,
    /// How often each code was used, by rising code.
    pub histogram: Option<Histogram>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct SourceEntry {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct ErrorEntry {
    pub relative_rmse: f64,
    /// Null where there is no error or no signal.
    pub snr_db: Option<f64>,
    pub largest: f64,
    /// Row and column of the largest error; null where there is none.
    pub largest_at: Option<(u64, u64)>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct GroupEntry {
    pub count: u64,
    pub rescued: u64,
    pub all_zero: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Histogram {
    /// The code that the first count is of.
    pub first: i32,
    pub counts: Vec<u64>,
}

impl Report {
    /// The text of the file.
    pub fn to_json(&self) -> Outcome<String> {
        let text = serde_json::to_string_pretty(self).map_err(Failure::refused)?;
        Ok(text + "\n")
    }
}

/// Where the report of an artifact is.
pub fn path_beside(artifact: &Path) -> PathBuf {
    let mut path = artifact.as_os_str().to_owned();
    path.push(".report.json");
    path.into()
}

/// The report's file beside the artifact, complete but for its name.
pub fn prepare(report: &Report, artifact: &Path) -> Outcome<OutputFile> {
    output::prepare(&path_beside(artifact), report.to_json()?.as_bytes(), progress::check)
}
