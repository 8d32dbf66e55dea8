//! Curves as SVG. Here lives the drawing of a finished run's numbers; no number is computed here.

use plotters::prelude::*;
use std::ops::Range;
use std::path::{Path, PathBuf};
use ulpian::io::{WriteError, check_target, write_atomic};

/// Why there is no plot.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    #[error("{}: plots are written as SVG; name the file .svg", path.display())]
    Extension { path: PathBuf },
    #[error("drawing the plot: {0}")]
    Draw(String),
    #[error("writing the plot: {0}")]
    Write(#[from] WriteError),
}

const SIZE: (u32, u32) = (800, 480);
/// Okabe and Ito's colours, which people who see few colours can tell apart too.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// What can be known before the numbers are there: that a plot of this name could be written.
pub fn check_plot(path: &Path) -> Result<(), PlotError> {
    if !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg")) {
        return Err(PlotError::Extension { path: path.into() });
    }
    Ok(check_target(path)?)
}

/// Draws one line per series of (step, loss) and writes the file whole or not at all. A loss that is not finite
/// interrupts its line: a run that diverged shows where. Equal numbers give equal files.
pub fn loss_plot(path: &Path, title: &str, series: &[(String, Vec<(f64, f64)>)]) -> Result<(), PlotError> {
    check_plot(path)?;
    let svg = draw(title, series).map_err(PlotError::Draw)?;
    Ok(write_atomic(path, svg.as_bytes())?)
}

fn draw(title: &str, series: &[(String, Vec<(f64, f64)>)]) -> Result<String, String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(|e| e.to_string())?;
        let finite = || series.iter().flat_map(|(_, points)| points).filter(|p| is_finite(p));
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(range(finite().map(|p| p.0)), range(finite().map(|p| p.1)))
            .map_err(|e| e.to_string())?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_label_formatter(&|x| if x.fract() == 0.0 { format!("{x}") } else { format!("{x:.2}") })
            .x_desc("step")
            .y_desc("loss")
            .draw()
            .map_err(|e| e.to_string())?;
        for (index, (name, points)) in series.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            for (part, run) in points.split(|p| !is_finite(p)).filter(|run| !run.is_empty()).enumerate() {
                let line = chart
                    .draw_series(LineSeries::new(run.iter().copied(), colour.stroke_width(2)))
                    .map_err(|e| e.to_string())?;
                // One entry in the legend, however often the line is interrupted.
                if part == 0 {
                    line.label(name).legend(move |(x, y)| {
                        PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2))
                    });
                }
            }
        }
        if series.len() > 1 {
            chart
                .configure_series_labels()
                .background_style(WHITE.mix(0.8))
                .border_style(BLACK.mix(0.3))
                .position(SeriesLabelPosition::UpperRight)
                .draw()
                .map_err(|e| e.to_string())?;
        }
        area.present().map_err(|e| e.to_string())?;
    }
    Ok(svg)
}

fn is_finite(&(x, y): &(f64, f64)) -> bool {
    x.is_finite() && y.is_finite()
}

/// From the least to the greatest value, never empty; 0 to 1 without values.
fn range(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    if low > high {
        0.0..1.0
    } else if low == high {
        // Wide enough to be distinct at any magnitude.
        let half = (low.abs() * 0.5).max(0.5);
        (low - half).max(f64::MIN)..(high + half).min(f64::MAX)
    } else {
        low..high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(points: &[(f64, f64)]) -> Vec<(String, Vec<(f64, f64)>)> {
        vec![("cpu".into(), points.to_vec())]
    }

    fn lines(svg: &str) -> usize {
        svg.matches("stroke-width=\"2\"").count()
    }

    #[test]
    fn each_series_is_one_line_and_equal_numbers_give_equal_files() {
        let mut two = series(&[(0.0, 2.3), (1.0, 1.0), (2.0, 0.5)]);
        assert_eq!(lines(&draw("loss", &two).unwrap()), 1);
        two.push(("vulkan:0".into(), vec![(0.0, 2.0), (2.0, 0.4)]));
        let svg = draw("loss", &two).unwrap();
        // Two lines and two legend strokes.
        assert_eq!(lines(&svg), 4);
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert_eq!(svg, draw("loss", &two).unwrap());
    }

    #[test]
    fn a_loss_that_is_not_finite_interrupts_the_line() {
        let points = [(0.0, 2.0), (1.0, 3.0), (2.0, f64::NAN), (3.0, 4.0), (4.0, 5.0), (5.0, f64::INFINITY)];
        let svg = draw("diverged", &series(&points)).unwrap();
        assert_eq!(lines(&svg), 2);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn degenerate_numbers_still_give_a_plot() {
        for points in [
            &[][..],
            &[(0.0, 0.0)],
            &[(0.0, 1e300), (1.0, 1e300)],
            &[(0.0, f64::NAN)],
            &[(1.0, 1e-300), (2.0, 1e-300)],
        ] {
            assert!(draw("few", &series(points)).is_ok(), "{points:?}");
        }
        assert!(draw("none", &[]).is_ok());
    }

    #[test]
    fn names_are_escaped() {
        let svg = draw("a < b & \"c\"", &[]).unwrap();
        assert!(svg.contains("a &lt; b &amp;"), "{svg}");
    }

    #[test]
    fn other_formats_are_refused_before_anything_is_written() {
        let path = std::env::temp_dir().join(format!("ulpian-plot-{}.png", std::process::id()));
        assert!(matches!(loss_plot(&path, "t", &[]), Err(PlotError::Extension { .. })));
        assert!(!path.exists());
    }

    #[test]
    fn the_file_is_written_whole() {
        let path = std::env::temp_dir().join(format!("ulpian-plot-{}.svg", std::process::id()));
        let points = series(&[(0.0, 2.3), (1.0, 1.0)]);
        loss_plot(&path, "loss", &points).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), draw("loss", &points).unwrap());
        std::fs::remove_file(path).unwrap();
    }
}
