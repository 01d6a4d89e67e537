//! Draws series of numbers as SVG: over time (`foreword-bench load`, `foreword-bench soak`), or by the
//! size of a memory (`foreword-bench search`). SVG is text, so no library is needed.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;

const WIDTH: f64 = 640.0;
const MARGIN: f64 = 60.0;
const PANEL: f64 = 86.0;

/// One figure at several moments or sizes.
pub struct Series {
    pub name: &'static str,
    pub points: Vec<(f64, f64)>,
}

/// Writes a panel for each series, one below the other, from zero to its largest value. The
/// stretches in `grey` have a grey background.
pub fn write<'a>(
    path: &Path,
    title: &str,
    unit: &str,
    series: impl Iterator<Item = &'a Series>,
    grey: &[(f64, f64)],
) -> anyhow::Result<()> {
    let series: Vec<&Series> = series.collect();
    std::fs::write(path, svg(title, unit, &series, grey))
        .with_context(|| format!("could not write {}", path.display()))
}

fn svg(title: &str, unit: &str, series: &[&Series], grey: &[(f64, f64)]) -> String {
    let height = 40.0 + PANEL * series.len() as f64 + 24.0;
    let right = WIDTH - MARGIN;
    let ends = series.iter().filter_map(|it| it.points.last());
    let end = ends.map(|it| it.0).fold(1.0, f64::max);
    let x = |at: f64| MARGIN + (right - MARGIN) * at / end;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"13\">{title}</text>\n"
    );
    for (from, to) in grey {
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"40\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#eeeeee\"/>",
            x(*from),
            x(*to) - x(*from),
            height - 64.0
        );
    }
    for (number, Series { name, points }) in (0..).zip(series) {
        let top = 40.0 + PANEL * f64::from(number);
        let bottom = top + PANEL - 12.0;
        let most = points.iter().map(|it| it.1).fold(0.0, f64::max);
        let y = |value: f64| bottom - (PANEL - 34.0) * value / most.max(f64::MIN_POSITIVE);
        let line = points.iter();
        let line: String = line
            .map(|(at, value)| format!("{:.1},{:.1} ", x(*at), y(*value)))
            .collect();
        let _ = writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{:.1}\">{name}, at most {most:.1}</text>\n\
             <line x1=\"{MARGIN}\" x2=\"{right}\" y1=\"{bottom:.1}\" y2=\"{bottom:.1}\" stroke=\"#bbbbbb\"/>\n\
             <polyline points=\"{line}\" fill=\"none\" stroke=\"#1a4fa3\" stroke-width=\"1.2\"/>",
            top + 14.0,
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">{end:.0} {unit}</text>\n</svg>",
        height - 8.0,
    );
    out
}
