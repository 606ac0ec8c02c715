//! The fetch graph as a picture of its own: waves are columns, requests are boxes, arrows carry what the next request
//! needs. No scripts, no fonts to load; colours follow the reader's light or dark preference.
//!
//! Layout in two steps: boxes of a column are ordered by the mean height of the boxes they wait for, then stacked. Each
//! arrow ends at a height of its own, so that the text on it has room.
//! Text widths are those of a monospaced font, so nothing has to be measured.

use std::fmt::{self, Write};

use ogive_base::{escape_markup, id::Id};

use crate::{
    describe::waves,
    graph::{Arrow, Graph, RequestBox, graph},
    ids::*,
    ir::*,
};

/// Width of a character, in user units (pixels).
const CHAR: f64 = 7.25;
/// Height of a line.
const LINE: f64 = 16.0;
/// Space between the border of a box and its text.
const PAD: f64 = 10.0;
/// Space between boxes of a column.
const GAP: f64 = 28.0;
/// Space between columns, on top of the widest arrow text.
const ALLEY: f64 = 60.0;
/// Height of a line of arrow text, and space around one arrow's text.
const SMALL_LINE: f64 = 12.0;
/// Space around everything, and height of the column titles.
const MARGIN: f64 = 24.0;

const STYLE: &str = "svg{background:#fff;color:#1b1f24}
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:currentColor}
.w{fill:#57606a}.t{font-weight:bold}.c{font-size:10px;fill:#57606a;stroke:#fff;stroke-width:3px;paint-order:stroke}
rect{fill:#f6f8fa;stroke:#8c959f}path{fill:none;stroke:#0969da;stroke-width:1.5}
.o{stroke-dasharray:4 4;stroke:#8c959f}.h{fill:#0969da;stroke:none}
@media (prefers-color-scheme:dark){svg{background:#0d1117;color:#e6edf3}.w,.c{fill:#8d96a0}.c{stroke:#0d1117}
rect{fill:#161b22;stroke:#3d444d}path{stroke:#4493f8}.o{stroke:#3d444d}.h{fill:#4493f8}}";

/// Where one box stands.
#[derive(Clone, Copy, Default)]
struct Place {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Place {
    fn middle(self) -> f64 {
        self.y + self.height / 2.0
    }
}

/// The fetch graph as an SVG document.
pub fn svg(plan: &Plan) -> String {
    let graph = graph(plan);
    let (places, columns, width, height) = layout(plan, &graph);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = draw(&graph, &places, &columns, (width, height), &mut out);
    out
}

fn draw(
    graph: &Graph,
    places: &[Place],
    columns: &[(u32, f64)],
    (width, height): (f64, f64),
    out: &mut String,
) -> fmt::Result {
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" aria-label=\"query plan\">"
    )?;
    writeln!(out, "<style>{STYLE}</style>")?;
    writeln!(
        out,
        "<defs><marker id=\"h\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path class=\"h\" d=\"M0 0L8 4L0 8z\"/></marker></defs>"
    )?;
    for (wave, x) in columns {
        writeln!(
            out,
            "<text class=\"w\" x=\"{x:.0}\" y=\"{MARGIN:.0}\">wave {wave}</text>"
        )?;
    }
    // Arrows first: those that pass a column go behind its boxes.
    let mut ends = vec![0.0; places.len()];
    for arrow in &graph.arrows {
        let Some(end) = ends.get_mut(arrow.to.index()) else {
            continue;
        };
        *end += arrow_height(arrow);
        draw_arrow(arrow, places, *end, out)?;
    }
    for (request, place) in graph.boxes.iter().zip(places) {
        draw_box(request, *place, out)?;
    }
    writeln!(out, "</svg>")
}

/// Room an arrow takes at the box it ends at.
fn arrow_height(arrow: &Arrow) -> f64 {
    arrow.lines.len() as f64 * SMALL_LINE + 10.0
}

/// `end`: how far below the top of its box the arrow ends.
fn draw_arrow(arrow: &Arrow, places: &[Place], end: f64, out: &mut String) -> fmt::Result {
    let (Some(from), Some(to)) = (places.get(arrow.from.index()), places.get(arrow.to.index()))
    else {
        return Ok(());
    };
    let (x1, y1, x2, y2) = (from.x + from.width, from.middle(), to.x, to.y + end);
    let bend = (x2 - x1) / 2.0;
    let class = if arrow.lines.is_empty() {
        " class=\"o\""
    } else {
        ""
    };
    write!(
        out,
        "<path{class} marker-end=\"url(#h)\" d=\"M{x1:.0} {y1:.0}C{:.0} {y1:.0} {:.0} {y2:.0} {x2:.0} {y2:.0}\">",
        x1 + bend,
        x2 - bend,
    )?;
    let title = if arrow.lines.is_empty() {
        "only order matters".to_owned()
    } else {
        arrow.lines.join("\n")
    };
    writeln!(
        out,
        "<title>{} → {}: {}</title></path>",
        arrow.from.0,
        arrow.to.0,
        escape_markup(&title)
    )?;
    for (at, line) in arrow.lines.iter().enumerate() {
        writeln!(
            out,
            "<text class=\"c\" x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>",
            x2 - 12.0,
            y2 - 5.0 - (arrow.lines.len() - 1 - at) as f64 * SMALL_LINE,
            escape_markup(line)
        )?;
    }
    Ok(())
}

fn draw_box(request: &RequestBox, place: Place, out: &mut String) -> fmt::Result {
    writeln!(
        out,
        "<rect x=\"{:.0}\" y=\"{:.0}\" width=\"{:.0}\" height=\"{:.0}\" rx=\"6\"/>",
        place.x, place.y, place.width, place.height
    )?;
    let x = place.x + PAD;
    let mut y = place.y + PAD + LINE - 5.0;
    writeln!(
        out,
        "<text class=\"t\" x=\"{x:.0}\" y=\"{y:.0}\">{}</text>",
        escape_markup(&title(request))
    )?;
    for line in &request.lines {
        y += LINE;
        writeln!(
            out,
            "<text x=\"{x:.0}\" y=\"{y:.0}\">{}</text>",
            escape_markup(line)
        )?;
    }
    Ok(())
}

fn title(request: &RequestBox) -> String {
    format!("{} {}", request.fetch.0, request.subgraph)
}

fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * CHAR
}

/// Places by fetch, columns as (wave, x), and the size of the picture.
fn layout(plan: &Plan, graph: &Graph) -> (Vec<Place>, Vec<(u32, f64)>, f64, f64) {
    let mut places = vec![Place::default(); graph.boxes.len()];
    let mut columns = Vec::new();
    let mut x = MARGIN;
    let mut bottom: f64 = MARGIN;
    for (wave, mut fetches) in waves(plan) {
        let carried = graph.arrows.iter().filter(|a| fetches.contains(&a.to));
        let labels = carried.flat_map(|arrow| &arrow.lines);
        // Arrow text is smaller than box text.
        let widest = labels
            .map(|line| text_width(line) * 0.86)
            .fold(0.0, f64::max);
        if wave > 1 || x > MARGIN {
            x += ALLEY + widest;
        }
        columns.push((wave, x));
        fetches.sort_by(|a, b| {
            let (a_height, b_height) = (waits_at(graph, &places, *a), waits_at(graph, &places, *b));
            a_height.total_cmp(&b_height).then(a.cmp(b))
        });
        let mut y = MARGIN + LINE;
        let mut width: f64 = 0.0;
        for fetch in fetches {
            let (Some(request), Some(place)) = (
                graph.boxes.get(fetch.index()),
                places.get_mut(fetch.index()),
            ) else {
                continue;
            };
            let lines = request.lines.iter().map(|line| text_width(line));
            let widest = lines.fold(text_width(&title(request)), f64::max);
            let arrows = graph.arrows.iter().filter(|arrow| arrow.to == fetch);
            let text = (request.lines.len() + 1) as f64 * LINE + 2.0 * PAD;
            *place = Place {
                x,
                y,
                width: widest + 2.0 * PAD,
                height: text.max(arrows.map(arrow_height).sum::<f64>() + PAD),
            };
            y += place.height + GAP;
            width = width.max(place.width);
        }
        bottom = bottom.max(y - GAP);
        x += width;
    }
    (places, columns, x + MARGIN, bottom + MARGIN)
}

/// Mean height of the boxes a fetch waits for; 0 if there are none.
fn waits_at(graph: &Graph, places: &[Place], fetch: FetchId) -> f64 {
    let from = graph.arrows.iter().filter(|arrow| arrow.to == fetch);
    let heights: Vec<f64> = from
        .filter_map(|arrow| places.get(arrow.from.index()))
        .map(|place| place.middle())
        .collect();
    if heights.is_empty() {
        return 0.0;
    }
    heights.iter().sum::<f64>() / heights.len() as f64
}
