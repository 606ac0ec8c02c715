//! Charts as inline SVG. Own code of little size: no chart library draws for light and dark at once, because colours
//! here are classes that the page's style sheet defines twice.
//!
//! Charts are 380 units wide with text of 12, so that one is readable on a phone and two stand side by side elsewhere.

use std::fmt::Write as _;

use ogive_base::escape_markup;

/// Width of every chart.
const WIDTH: f64 = 380.0;
/// Height of line charts.
const HEIGHT: f64 = 240.0;
/// Room for labels.
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;
/// Height of one bar with its label.
const BAR: f64 = 38.0;

/// A line.
#[derive(Clone, Debug)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// Number of its colour.
    pub colour: usize,
    /// Points.
    pub points: Vec<(f64, f64)>,
    /// Whether points are marked.
    pub marks: bool,
}

/// How an axis is divided.
#[derive(Clone, Debug)]
pub enum Axis {
    /// Evenly, from 0.
    Linear,
    /// By powers of ten.
    Log,
    /// Percentiles, each nine as wide as the one before.
    Percentiles,
}

/// A bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What it is.
    pub name: String,
    /// Number of its colour.
    pub colour: usize,
    /// Its length with smallest and largest; `None`: there is only a reason.
    pub value: Option<(f64, f64, f64)>,
    /// What is written beside it.
    pub label: String,
}

/// Horizontal bars, the first on top; gateways out of the ranking are grey with their reason.
pub fn bars(title: &str, bars: &[Bar]) -> String {
    let height = TOP + BAR * bars.len() as f64 + 6.0;
    let most = bars
        .iter()
        .filter_map(|b| b.value)
        .map(|(_, _, max)| max)
        .fold(0.0, f64::max);
    let room = WIDTH - RIGHT - 62.0;
    let mut out = open(title, height);
    for (i, bar) in bars.iter().enumerate() {
        let y = TOP + BAR * i as f64;
        let class = if bar.value.is_some() {
            ""
        } else {
            " class=\"out\""
        };
        let _ = write!(
            out,
            "<text x=\"0\" y=\"{}\"{class}>{}</text>",
            y + 11.0,
            escape_markup(&bar.name)
        );
        let Some((value, min, max)) = bar.value else {
            let _ = write!(
                out,
                "<text x=\"0\" y=\"{}\" class=\"out small\">{}</text>",
                y + 26.0,
                escape_markup(&bar.label)
            );
            continue;
        };
        let length = |v: f64| {
            if most > 0.0 {
                (v / most * room).max(1.5)
            } else {
                1.5
            }
        };
        let _ = write!(
            out,
            "<rect x=\"0\" y=\"{}\" width=\"{:.1}\" height=\"12\" rx=\"2\" class=\"f{}\"><title>{}: {}</title></rect>",
            y + 16.0,
            length(value),
            bar.colour,
            escape_markup(&bar.name),
            escape_markup(&bar.label)
        );
        if max > min {
            let (from, to, middle) = (length(min), length(max), y + 22.0);
            let _ = write!(
                out,
                "<path d=\"M{from:.1} {middle}H{to:.1}M{from:.1} {}v6M{to:.1} {}v6\" class=\"spread\"/>",
                middle - 3.0,
                middle - 3.0
            );
        }
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{}\">{}</text>",
            length(value.max(max)) + 6.0,
            y + 26.0,
            escape_markup(&bar.label)
        );
    }
    out.push_str("</svg>");
    out
}

/// Lines over two axes.
pub fn lines(
    title: &str,
    x_title: &str,
    y_title: &str,
    x: &Axis,
    y: &Axis,
    lines: &[Line],
) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let xs = Scale::new(x, points().map(|p| p.0), LEFT, WIDTH - RIGHT);
    let ys = Scale::new(y, points().map(|p| p.1), HEIGHT - BOTTOM, TOP);
    let mut out = open(title, HEIGHT);
    for (value, label) in xs.ticks() {
        let at = xs.place(value);
        let _ = write!(
            out,
            "<path d=\"M{at:.1} {TOP}V{0}\" class=\"grid\"/><text x=\"{at:.1}\" y=\"{1}\" class=\"tick\" text-anchor=\"{2}\">{label}</text>",
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 15.0,
            // At the edge a label would stick out.
            if at > WIDTH - RIGHT - 16.0 {
                "end"
            } else {
                "middle"
            }
        );
    }
    for (value, label) in ys.ticks() {
        let at = ys.place(value);
        let _ = write!(
            out,
            "<path d=\"M{LEFT} {at:.1}H{0}\" class=\"grid\"/><text x=\"{1}\" y=\"{2:.1}\" class=\"tick\" text-anchor=\"end\">{label}</text>",
            WIDTH - RIGHT,
            LEFT - 5.0,
            at + 4.0
        );
    }
    let _ = write!(
        out,
        "<text x=\"{}\" y=\"{}\" class=\"tick\" text-anchor=\"middle\">{}</text>\
         <text transform=\"translate(11 {}) rotate(-90)\" class=\"tick\" text-anchor=\"middle\">{}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 6.0,
        escape_markup(x_title),
        (TOP + HEIGHT - BOTTOM) / 2.0,
        escape_markup(y_title)
    );
    for line in lines {
        let mut path = String::new();
        for (i, (px, py)) in line.points.iter().enumerate() {
            let command = if i == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{:.1} {:.1}", xs.place(*px), ys.place(*py));
        }
        let name = escape_markup(&line.name);
        let _ = write!(
            out,
            "<path d=\"{path}\" class=\"line s{}\"><title>{name}</title></path>",
            line.colour
        );
        if line.marks {
            for (px, py) in &line.points {
                let _ = write!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" class=\"f{}\"><title>{name}: {} at {}</title></circle>",
                    xs.place(*px),
                    ys.place(*py),
                    line.colour,
                    super::summary::significant(*py),
                    super::summary::significant(*px)
                );
            }
        }
    }
    out.push_str("</svg>");
    out
}

/// A chart as a file of its own, light and dark, for pages that show it as an image.
pub fn standalone(chart: &str, style: &str) -> String {
    let more = "svg{background:var(--card);padding:12px}";
    match chart.split_once('>') {
        Some((open, rest)) => format!(
            "{open}><style>{}{more}</style>{rest}\n",
            escape_markup(style).replace("&quot;", "'")
        ),
        None => chart.to_owned(),
    }
}

fn open(title: &str, height: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{0}\" xmlns=\"http://www.w3.org/2000/svg\"><title>{0}</title>",
        escape_markup(title)
    )
}

/// Values to places.
struct Scale {
    axis: Axis,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn new(axis: &Axis, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let values: Vec<f64> = values.filter(|v| v.is_finite()).collect();
        let most = values.iter().copied().fold(0.0, f64::max);
        let (low, high) = match axis {
            Axis::Linear => (0.0, nice(most)),
            Axis::Log => {
                let least = values
                    .iter()
                    .copied()
                    .filter(|v| *v > 0.0)
                    .fold(f64::INFINITY, f64::min);
                let low = if least.is_finite() {
                    least.log10().floor()
                } else {
                    0.0
                };
                let high = most.max(1e-9).log10().ceil();
                (low, if high > low { high } else { low + 1.0 })
            }
            Axis::Percentiles => (0.0, nines(most).clamp(2.0, 5.0)),
        };
        Scale {
            axis: axis.clone(),
            low,
            high,
            from,
            to,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let at = match self.axis {
            Axis::Linear => value,
            Axis::Log => value.max(1e-9).log10(),
            Axis::Percentiles => nines(value),
        };
        let part = ((at - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.from + (self.to - self.from) * part
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        let show = super::summary::significant;
        match self.axis {
            Axis::Linear => (0..=4)
                .map(|i| self.high * f64::from(i) / 4.0)
                .map(|v| (v, show(v)))
                .collect(),
            Axis::Log => {
                let decades = (self.low as i32)..=(self.high as i32);
                let every = ((self.high - self.low) as usize / 6 + 1).max(1);
                decades
                    .step_by(every)
                    .map(|d| 10f64.powi(d))
                    .map(|v| (v, show(v)))
                    .collect()
            }
            Axis::Percentiles => [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999]
                .into_iter()
                .filter(|q| nines(*q) <= self.high + 1e-9)
                .map(|q| (q, format!("{}", (q * 1e5).round() / 1e3)))
                .collect(),
        }
    }
}

/// 0.9 is 1, 0.99 is 2.
fn nines(q: f64) -> f64 {
    -(1.0 - q).max(1e-6).log10()
}

/// The next number people like.
fn nice(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps
        .into_iter()
        .map(|s| s * power)
        .find(|s| *s >= value)
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_place_ends_and_nines() {
        let scale = Scale::new(&Axis::Percentiles, [0.0, 0.999].into_iter(), 0.0, 300.0);
        assert!((scale.place(0.9) - 100.0).abs() < 1e-6);
        assert!((scale.place(0.99) - 200.0).abs() < 1e-6);
        let scale = Scale::new(&Axis::Log, [2.0, 900.0].into_iter(), 0.0, 300.0);
        assert!((scale.place(100.0) - 200.0).abs() < 1e-6);
        assert_eq!(nice(0.0), 1.0);
        assert_eq!(nice(1300.0), 1600.0);
    }

    #[test]
    fn charts_are_well_formed_even_without_data() {
        let empty = lines("t", "x", "y", &Axis::Linear, &Axis::Log, &[]);
        assert!(empty.starts_with("<svg") && empty.ends_with("</svg>") && !empty.contains("NaN"));
        let bar = Bar {
            name: "<b>".into(),
            colour: 0,
            value: Some((1.0, 0.5, 2.0)),
            label: "1".into(),
        };
        let drawn = bars("t", &[bar]);
        assert!(drawn.contains("&lt;b&gt;") && !drawn.contains("NaN"));
    }
}
