//! The plot: decode and quantize, inside L2 and from memory, beside the peers and the limit.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::memory::Pages;
use crate::trial::{Place, Record, Role, Timing, short};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Pick = fn(&Record) -> Option<&Timing>;

/// Who is drawn: a name, a colour and where to find the result.
const SERIES: [(&str, RGBColor, Pick); 4] = [
    ("ninfer-codec", RGBColor(0x1f, 0x6f, 0xb4), Record::chosen),
    ("ninfer-codec, portable", RGBColor(0x8f, 0xc1, 0xe3), |record| record.named("portable")),
    ("ggml", RGBColor(0xd9, 0x7b, 0x29), |record| peer(record, "ggml")),
    ("candle", RGBColor(0xb0, 0xa8, 0x99), |record| peer(record, "candle")),
];

fn peer<'a>(record: &'a Record, start: &str) -> Option<&'a Timing> {
    record.timings.iter().find(|timing| timing.name.starts_with(start))
}

/// Draws records of 4 kB pages; of 2 MB pages where there are no others.
pub fn draw(path: &Path, records: &[Record]) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, (980, 700)).into_drawing_area();
    root.fill(&WHITE)?;
    let small = records.iter().any(|record| record.work.pages == Pages::Small);
    let pages = if small { Pages::Small } else { Pages::Huge };
    let (panels, legend) = root.split_vertically(650);
    let panels = panels.split_evenly((2, 2));
    let works = [("decode", "Decode to f32"), ("quantize", "Quantize f32")];
    let places = [(Place::L2, "inside L2"), (Place::Memory, "from memory")];
    for (row, (operation, title)) in works.into_iter().enumerate() {
        for (column, (place, where_)) in places.into_iter().enumerate() {
            let shown: Vec<&Record> = records
                .iter()
                .filter(|record| {
                    let work = &record.work;
                    (work.operation, work.values, work.place) == (operation, "f32", place)
                        && (work.pages, work.threads, work.note) == (pages, 1, "")
                        && !crate::works::is_direct(work.format)
                })
                .collect();
            panel(&panels[row * 2 + column], &format!("{title}, {where_}"), &shown)?;
        }
    }
    draw_legend(&legend)?;
    root.present()?;
    Ok(())
}

fn panel(area: &Area<'_>, title: &str, records: &[&Record]) -> Result<(), Box<dyn Error>> {
    let giga = |timing: &Timing| timing.weights_per_second / 1e9;
    let highest =
        records.iter().flat_map(|record| &record.timings).filter(|t| t.role != Role::Check).map(giga);
    let top = highest.fold(1.0, f64::max) * 1.08;
    let width = records.len().max(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 17))
        .margin(10)
        .x_label_area_size(26)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..width, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(0xe4, 0xe4, 0xe4))
        .y_desc("G weights/s")
        .label_style(("sans-serif", 13))
        .draw()?;
    for (index, record) in records.iter().enumerate() {
        let left = index as f64;
        for (slot, (_, colour, pick)) in SERIES.iter().enumerate() {
            if let Some(timing) = pick(record) {
                let x = left + 0.1 + 0.2 * slot as f64;
                let bar = [(x, 0.0), (x + 0.17, giga(timing))];
                chart.draw_series([Rectangle::new(bar, colour.filled())])?;
            }
        }
        if let Some(limit) = record.best(Role::Limit) {
            let line = vec![(left + 0.05, giga(limit)), (left + 0.95, giga(limit))];
            chart.draw_series([PathElement::new(line, BLACK.stroke_width(2))])?;
        }
        let (x, y) = chart.backend_coord(&(left + 0.5, 0.0));
        let (base_x, base_y) = area.get_base_pixel();
        let style = ("sans-serif", 13).into_text_style(area);
        area.draw_text(short(record.work.format), &style, (x - base_x - 12, y - base_y + 6))?;
    }
    Ok(())
}

fn draw_legend(area: &Area<'_>) -> Result<(), Box<dyn Error>> {
    let style = ("sans-serif", 14).into_text_style(area);
    let mut x = 60;
    for (name, colour, _) in SERIES {
        area.draw(&Rectangle::new([(x, 12), (x + 14, 26)], colour.filled()))?;
        area.draw_text(name, &style, (x + 20, 12))?;
        x += 60 + 8 * name.len() as i32;
    }
    area.draw(&PathElement::new(vec![(x, 19), (x + 22, 19)], BLACK.stroke_width(2)))?;
    area.draw_text("the machine's limit: store or read loop", &style, (x + 28, 12))?;
    Ok(())
}
