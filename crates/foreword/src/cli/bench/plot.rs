//! Draws how search slows down as the memory grows (`bench search --plot`), and what a home
//! takes over time (`bench load --plot`, `bench soak --plot`).
//!
//! Of search, both axes count by tens, so that a straight line is steady growth. An SVG is text
//! and needs nothing to make.

use std::fmt::Write as _;

use super::census::Series;
use super::search::Measured;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const MARGIN: f64 = 60.0;
/// From a tenth of a millisecond to a second.
const TIMES: [f64; 5] = [0.1, 1.0, 10.0, 100.0, 1000.0];

struct Line {
    name: &'static str,
    colour: &'static str,
    time: fn(&Measured) -> f64,
}

pub fn svg(sizes: &[Measured]) -> String {
    let lines = [
        Line {
            name: "FTS5 alone",
            colour: "#999999",
            time: |it| it.stock(50),
        },
        Line {
            name: "Foreword, memory opened anew",
            colour: "#5b8dd9",
            time: |it| it.first(50),
        },
        Line {
            name: "Foreword",
            colour: "#1a4fa3",
            time: |it| it.ours(50),
        },
    ];
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\">one query by words: median milliseconds, by observations</text>\n"
    );
    let rows = || sizes.iter().map(|it| f64::from(it.rows));
    let (fewest, most) = (rows().fold(f64::MAX, f64::min), rows().fold(1.0, f64::max));
    let x = |rows: f64| place(rows, fewest, most, MARGIN, WIDTH - MARGIN);
    let y = |time: f64| place(time, TIMES[0], TIMES[4], HEIGHT - MARGIN, MARGIN);
    for time in TIMES {
        let (y, end) = (y(time), WIDTH - MARGIN);
        let _ = writeln!(
            out,
            "<line x1=\"{MARGIN}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{time}</text>",
            MARGIN - 6.0,
            y + 4.0,
        );
    }
    for rows in rows() {
        let (x, y) = (x(rows), HEIGHT - MARGIN + 18.0);
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{rows}</text>"
        );
    }
    for (number, Line { name, colour, time }) in (0..).zip(lines) {
        let mut points = String::new();
        for size in sizes {
            let (x, y) = (x(f64::from(size.rows)), y(time(size)));
            let _ = write!(points, "{x:.1},{y:.1} ");
            let _ = writeln!(
                out,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"><title>{:.2} ms</title></circle>",
                time(size)
            );
        }
        let key = 46.0 + 16.0 * f64::from(number);
        let _ = writeln!(
            out,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n\
             <text x=\"{}\" y=\"{key}\" fill=\"{colour}\">{name}</text>",
            MARGIN + 10.0,
        );
    }
    out.push_str("</svg>\n");
    out
}

const PANEL: f64 = 86.0;

/// One panel below the other, each from zero to its most, over minutes. Stretches of time that
/// were different are grey.
pub fn over_time(title: &str, series: &[Series], grey: &[(f64, f64)]) -> String {
    let height = 40.0 + PANEL * series.len() as f64 + 24.0;
    let minutes = |seconds: f64| seconds / 60.0;
    let ends = series.iter().filter_map(|it| it.points.last());
    let end = ends.map(|it| it.0).fold(1.0, f64::max);
    let x = |seconds: f64| MARGIN + (WIDTH - 2.0 * MARGIN) * seconds / end;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"13\">{title}</text>\n"
    );
    for (from, to) in grey {
        let (left, width) = (x(*from), x(*to) - x(*from));
        let _ = writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"40\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"#eeeeee\"/>",
            height - 64.0
        );
    }
    for (number, Series { name, points, .. }) in (0..).zip(series) {
        let top = 40.0 + PANEL * f64::from(number);
        let bottom = top + PANEL - 12.0;
        let most = points.iter().map(|it| it.1).fold(0.0, f64::max);
        let y = |value: f64| bottom - (PANEL - 34.0) * value / most.max(f64::MIN_POSITIVE);
        let mut line = String::new();
        for (seconds, value) in points {
            let _ = write!(line, "{:.1},{:.1} ", x(*seconds), y(*value));
        }
        let _ = writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{:.1}\">{name}, at most {most:.1}</text>\n\
             <line x1=\"{MARGIN}\" x2=\"{:.1}\" y1=\"{bottom:.1}\" y2=\"{bottom:.1}\" stroke=\"#bbbbbb\"/>\n\
             <polyline points=\"{line}\" fill=\"none\" stroke=\"#1a4fa3\" stroke-width=\"1.2\"/>",
            top + 14.0,
            WIDTH - MARGIN,
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{:.1} minutes</text>\n</svg>",
        WIDTH - MARGIN,
        height - 8.0,
        minutes(end),
    );
    out
}

/// Where a value stands between two ends, counted by tens.
fn place(value: f64, least: f64, most: f64, from: f64, to: f64) -> f64 {
    let all = (most / least).log10();
    let part = if all > 0.0 {
        (value.max(least) / least).log10() / all
    } else {
        0.5
    };
    from + (to - from) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ten_takes_as_much_room() {
        assert_eq!(place(10.0, 1.0, 100.0, 0.0, 200.0), 100.0);
        assert_eq!(place(7.0, 7.0, 7.0, 0.0, 200.0), 100.0);
    }
}
