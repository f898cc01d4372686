//! What was packed, object by object: the entries of the report, and the table.

use ninfer_codec::ResourceEncoding;

use crate::assign::Job;
use crate::measure::Measure;
use crate::report::{ErrorEntry, GroupEntry, Histogram, ObjectEntry, SourceEntry};
use crate::resource::Resource;
use crate::table::{Table, bits_per_weight, grouped, shape};

/// The entry of a tensor; `measure` is absent before the conversion.
pub fn tensor(job: &Job<'_>, offset: u64, measure: Option<&Measure>, sha256: String) -> ObjectEntry {
    let plan = &job.plan;
    let format = plan.format();
    let tensors = job.parts.iter().flat_map(|part| part.words.tensors());
    ObjectEntry {
        name: job.name.clone(),
        sources: tensors
            .map(|tensor| SourceEntry {
                name: tensor.name.into(),
                dtype: tensor.dtype.to_string(),
                shape: tensor.shape.into(),
            })
            .collect(),
        rule: job.rule.clone(),
        encoder: job.encoder().into(),
        shape: job.shape.clone(),
        format: format.name().into(),
        layout: Some(format.layout().name().into()),
        offset,
        bytes: plan.payload_bytes(),
        bits_per_weight: Some(bits_per_weight(plan.payload_bytes(), plan.elements())),
        sha256,
        error: measure.filter(|_| format.scheme().is_some()).map(|measure| ErrorEntry {
            relative_rmse: measure.relative_rmse(),
            snr_db: measure.snr_db(),
            largest: measure.largest,
            largest_at: (measure.largest > 0.0).then_some(measure.largest_at),
        }),
        groups: measure.filter(|measure| measure.groups > 0).map(|measure| GroupEntry {
            count: measure.groups,
            rescued: measure.rescued,
            all_zero: measure.all_zero,
        }),
        histogram: measure.filter(|measure| !measure.histogram.is_empty()).map(|measure| Histogram {
            first: format.descriptor().code_interval.map_or(0, |_| -(measure.histogram.len() as i32 / 2)),
            counts: measure.histogram.clone(),
        }),
    }
}

/// The entry of a resource.
pub fn resource(resource: &Resource, offset: u64, sha256: String) -> ObjectEntry {
    let bytes = resource.file.len() as u64;
    ObjectEntry {
        name: resource.name.clone(),
        sources: vec![SourceEntry {
            name: resource.file.file_name(),
            dtype: "bytes".into(),
            shape: vec![bytes],
        }],
        rule: resource.origin.clone(),
        encoder: "copied".into(),
        shape: Vec::new(),
        format: ResourceEncoding::RawBytesV1.name().into(),
        layout: None,
        offset,
        bytes,
        bits_per_weight: None,
        sha256,
        error: None,
        groups: None,
        histogram: None,
    }
}

/// The table of what was packed, or of what would be.
pub fn table(objects: &[ObjectEntry], measured: bool) -> Table {
    let mut heading = vec!["tensor", "source", ">shape", "format", "layout", ">bytes", ">bits/weight"];
    if measured {
        heading.extend([">rel. RMSE", ">max. error"]);
    }
    let mut table = Table::new(&heading);
    for object in objects {
        let mut types = Vec::new();
        for source in &object.sources {
            if !types.contains(&source.dtype.as_str()) {
                types.push(&source.dtype);
            }
        }
        let layout = object.layout.clone();
        let mut cells = vec![
            object.name.clone(),
            types.join("+"),
            layout.as_ref().map_or(String::new(), |_| shape(&object.shape)),
            object.format.clone(),
            layout.unwrap_or_default(),
            grouped(object.bytes),
            object.bits_per_weight.map_or(String::new(), |bits| format!("{bits:.3}")),
        ];
        if measured {
            let error = object.error.as_ref();
            cells.push(error.map_or("0".into(), |error| format!("{:.5}", error.relative_rmse)));
            cells.push(error.map_or("0".into(), |error| format!("{:.3e}", error.largest)));
        }
        table.row(cells);
    }
    table
}
