//! The plots of a report, as SVG text.

use std::error::Error;

use plotters::prelude::*;

use crate::report::{Histogram, ObjectEntry};

/// Tensors of which the error is drawn; the worst, where there are more.
pub const BARS: usize = 60;

const WIDTH: u32 = 1000;
const FONT: &str = "sans-serif";

/// What drawing gives: SVG text.
pub type Drawn = Result<String, Box<dyn Error>>;

/// Formats have one colour in every plot.
fn colour(format: &str) -> RGBColor {
    let number = ninfer_codec::Format::from_name(format.as_bytes()).map_or(0, ninfer_codec::Format::id);
    const COLOURS: [RGBColor; 10] = [
        RGBColor(0x7f, 0x7f, 0x7f),
        RGBColor(0x8c, 0x56, 0x4b),
        RGBColor(0xe3, 0x77, 0xc2),
        RGBColor(0xbc, 0xbd, 0x22),
        RGBColor(0x1f, 0x77, 0xb4),
        RGBColor(0xff, 0x7f, 0x0e),
        RGBColor(0x2c, 0xa0, 0x2c),
        RGBColor(0xd6, 0x27, 0x28),
        RGBColor(0x94, 0x67, 0xbd),
        RGBColor(0x17, 0xbe, 0xcf),
    ];
    COLOURS[number as usize % COLOURS.len()]
}

/// Relative RMSE of each tensor, a bar each.
pub fn errors(objects: &[&ObjectEntry]) -> Drawn {
    let mut bars: Vec<_> = objects
        .iter()
        .filter_map(|object| {
            Some((object.name.as_str(), object.format.as_str(), object.error.as_ref()?.relative_rmse))
        })
        .collect();
    if bars.len() > BARS {
        bars.sort_by(|a, b| b.2.total_cmp(&a.2));
        bars.truncate(BARS);
    }
    bars.reverse(); // the first on top
    let most = bars.iter().map(|bar| bar.2).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    // An axis of segments has two at least.
    let slots = bars.len().max(2);
    let mut svg = String::new();
    {
        let height = 80 + 18 * slots as u32;
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(380)
            .build_cartesian_2d(0.0..most * 1.05, (0..slots as i32 - 1).into_segmented())?;
        let name = |position: &SegmentValue<i32>| match position {
            SegmentValue::CenterOf(index) => bars.get(*index as usize).map_or("", |bar| bar.0).to_string(),
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("relative RMSE")
            .y_labels(slots)
            .y_label_formatter(&name)
            .y_label_style((FONT, 12))
            .draw()?;
        chart.draw_series((0..).zip(&bars).map(|(index, &(_, format, error))| {
            let corners = [(0.0, SegmentValue::Exact(index)), (error, SegmentValue::Exact(index + 1))];
            let mut bar = Rectangle::new(corners, colour(format).filled());
            bar.set_margin(3, 3, 0, 0);
            bar
        }))?;
        area.present()?;
    }
    Ok(svg)
}

/// Signal-to-noise ratio over stored bits, a point for each tensor.
pub fn bits_against_snr(objects: &[&ObjectEntry]) -> Drawn {
    let points: Vec<_> = objects
        .iter()
        .filter_map(|object| {
            Some((object.format.as_str(), object.bits_per_weight?, object.error.as_ref()?.snr_db?))
        })
        .collect();
    let range = |values: &mut dyn Iterator<Item = f64>| {
        let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        if least > most { 0.0..1.0 } else { least - 1.0..most + 1.0 }
    };
    let bits = range(&mut points.iter().map(|point| point.1));
    let snr = range(&mut points.iter().map(|point| point.2));
    let mut formats: Vec<_> = points.iter().map(|point| point.0).collect();
    formats.sort_unstable();
    formats.dedup();
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, 420)).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(bits, snr)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("stored bits a weight")
            .y_desc("SNR, dB")
            .draw()?;
        for format in formats {
            let own = points.iter().filter(|point| point.0 == format);
            let style = colour(format).mix(0.7).filled();
            chart
                .draw_series(own.map(|&(_, bits, snr)| Circle::new((bits, snr), 4, style)))?
                .label(format)
                .legend(move |(x, y)| Circle::new((x + 8, y), 4, style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .border_style(BLACK.mix(0.3))
            .draw()?;
        area.present()?;
    }
    Ok(svg)
}

/// How often each code is used.
pub fn codes(format: &str, histogram: &Histogram) -> Drawn {
    let last = histogram.first + histogram.counts.len() as i32 - 1;
    let most = histogram.counts.iter().copied().max().unwrap_or(0).max(1);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, 320)).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(80)
            .build_cartesian_2d((histogram.first..last).into_segmented(), 0..most + most / 20 + 1)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .disable_x_mesh()
            .x_desc("code")
            .y_desc("weights")
            .draw()?;
        chart.draw_series((histogram.first..).zip(&histogram.counts).map(|(code, &count)| {
            let corners = [(SegmentValue::Exact(code), 0), (SegmentValue::Exact(code + 1), count)];
            Rectangle::new(corners, colour(format).filled())
        }))?;
        area.present()?;
    }
    Ok(svg)
}
