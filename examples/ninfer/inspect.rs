//! `inspect`: what an artifact's directory says. No payload is read.

use anstream::println;
use ninfer_artifact::Kind;

use crate::cli::Inspect;
use crate::failure::Outcome;
use crate::opened::Mapped;
use crate::table::{Table, bits_per_weight, grouped, shape};

pub fn run(arguments: &Inspect) -> Outcome<()> {
    let file = Mapped::open(&arguments.file)?;
    let artifact = file.artifact()?;
    let directory = artifact.directory();
    let identity = directory.identity();
    println!("model {:?}, weights {:?}", identity.model_id, identity.weights_id);
    let mut table =
        Table::new(&["object", ">shape", "format", "layout", ">offset", ">bytes", ">bits/weight"]);
    for object in directory.objects() {
        let (dimensions, format, layout, bits) = match object.kind() {
            Kind::Tensor { shape: dimensions, plan } => (
                shape(dimensions),
                plan.format().name(),
                plan.layout().name(),
                format!("{:.3}", bits_per_weight(object.bytes(), plan.elements())),
            ),
            Kind::Resource { encoding } => (String::new(), "", encoding.name(), String::new()),
        };
        table.row(vec![
            object.name().into(),
            dimensions,
            format.into(),
            layout.into(),
            grouped(object.offset()),
            grouped(object.bytes()),
            bits,
        ]);
    }
    print!("{table}");
    println!(
        "{} objects from byte {} on, {} bytes in all",
        directory.objects().len(),
        directory.payload_offset(),
        grouped(file.len() as u64)
    );
    Ok(())
}
