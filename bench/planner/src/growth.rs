//! How planning grows with its input: instructions per family and size, as a table and a chart.
//!
//! Instructions are counted by valgrind: the program runs itself twice for each member, with one pass and with two, and
//! the difference is what a pass costs (parse, validate, normalise, plan). They do not depend on what else the machine
//! does. The chart has logarithmic axes, so that linear growth is a line as steep as the guides.

use std::{fmt::Write as _, process::Command};

use crate::{
    families::{GROWING, refused},
    planners::{Engine, Who},
};

/// One member of a family.
struct Point {
    size: usize,
    /// Bytes of the supergraph and of the operation.
    bytes: usize,
    instructions: u64,
    /// Bytes of the plan in memory.
    memory: usize,
}

/// Plans a member so many times, for valgrind to count.
pub fn work(family: usize, size: usize, passes: usize) -> Result<(), String> {
    let growing = GROWING.get(family);
    let growing = growing.ok_or_else(|| format!("there is no family {family}"))?;
    let case = (growing.member)(size);
    let (graph, text) = &case.operations[0];
    let engine = Engine::new(Who::Ogive, &case.graphs[*graph])?;
    for _ in 0..passes {
        let counts = engine.plan(std::hint::black_box(text));
        counts.map_err(|error| unplanned(&case.name, &error))?;
    }
    Ok(())
}

/// A row without a plan would be a row without a meaning.
fn unplanned(name: &str, error: &str) -> String {
    format!("`{name}` cannot be planned, so its growth cannot be measured: {error}")
}

/// How long inputs beyond a limit take to be refused, in time of the thread: the least of several.
fn refusals() -> Result<String, String> {
    let mut out =
        String::from("| Beyond a limit | bytes | refused after | why |\n|---|---|---|---|\n");
    for case in refused() {
        eprintln!("{}", case.name);
        let (graph, text) = &case.operations[0];
        let engine = Engine::new(Who::Ogive, &case.graphs[*graph])?;
        let mut least = f64::MAX;
        let mut why = String::new();
        for _ in 0..5 {
            let start = crate::thread_seconds();
            why = match engine.plan(text) {
                Ok(_) => return Err(format!("`{}` is to be refused, and is planned", case.name)),
                Err(error) => error,
            };
            least = least.min(crate::thread_seconds() - start);
        }
        let _ = writeln!(
            out,
            "| {} | {} | {:.1} ms | {} |",
            case.name,
            text.len(),
            least * 1e3,
            why.trim_start_matches("refused: ")
        );
    }
    Ok(out)
}

/// Measures all families; gives the tables and the chart. Fails if a member cannot be planned or valgrind cannot be run.
pub fn measure() -> Result<(String, String), String> {
    let refusals = refusals()?;
    println!("{refusals}");
    let mut rows = Vec::new();
    for (at, family) in GROWING.iter().enumerate() {
        eprintln!("{}", family.name);
        let points = family.sizes.iter().map(|size| point(at, *size));
        rows.push((family.name, points.collect::<Result<Vec<Point>, String>>()?));
    }
    Ok((table(&rows) + "\n" + &refusals, chart(&rows)))
}

fn point(family: usize, size: usize) -> Result<Point, String> {
    let case = (GROWING[family].member)(size);
    let (graph, text) = &case.operations[0];
    let engine = Engine::new(Who::Ogive, &case.graphs[*graph])?;
    let memory = engine.plan_bytes(text);
    let memory = memory.map_err(|error| unplanned(&case.name, &error))?;
    let once = instructions(family, size, 1)?;
    let twice = instructions(family, size, 2)?;
    Ok(Point {
        size,
        bytes: case.graphs[*graph].len() + text.len(),
        instructions: twice.saturating_sub(once),
        memory,
    })
}

fn instructions(family: usize, size: usize, passes: usize) -> Result<u64, String> {
    let program = std::env::current_exe();
    let program = program.map_err(|error| format!("this program is not found: {error}"))?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--work", &family.to_string(), &size.to_string()])
        .arg(passes.to_string())
        .output()
        .map_err(|error| format!("valgrind cannot be run, install it: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let count = text.split("Collected :").nth(1);
    let count = count.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    count.ok_or_else(|| format!("valgrind counted nothing: {text}"))
}

/// The power of the input by which something grows from the first point to the last.
fn power(points: &[Point], of: fn(&Point) -> f64) -> f64 {
    match (points.first(), points.last()) {
        (Some(a), Some(b)) => (of(b) / of(a)).ln() / (b.bytes as f64 / a.bytes as f64).ln(),
        _ => 0.0,
    }
}

fn table(rows: &[(&str, Vec<Point>)]) -> String {
    let mut out = String::from(
        "| Family | sizes | instructions of the largest | per byte of input, smallest to largest | grows with the input to the power | plan in memory grows to the power |\n|---|---|---|---|---|---|\n",
    );
    for (name, points) in rows {
        let sizes: Vec<String> = points.iter().map(|p| p.size.to_string()).collect();
        let per_byte = |p: &Point| p.instructions as f64 / p.bytes as f64;
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            continue;
        };
        let _ = writeln!(
            out,
            "| {name} | {} | {:.1} million | {:.0} to {:.0} | {:.2} | {:.2} |",
            sizes.join(", "),
            last.instructions as f64 / 1e6,
            per_byte(first),
            per_byte(last),
            power(points, |p| p.instructions as f64),
            power(points, |p| p.memory as f64),
        );
    }
    out
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 480.0;
/// Left of the axis, above and below.
const MARGIN: f64 = 60.0;
/// Room for names on the right.
const NAMES: f64 = 240.0;
const COLOURS: &[&str] = &[
    "#1b6ca8", "#c0392b", "#1e8449", "#8e44ad", "#b9770e", "#0e6655", "#a93226", "#2471a3",
    "#7d3c98", "#117864", "#873600",
];

fn chart(rows: &[(&str, Vec<Point>)]) -> String {
    let all = || rows.iter().flat_map(|(_, points)| points);
    let ends = |of: fn(&Point) -> f64| {
        let values = all().map(of);
        values.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)))
    };
    let x = |p: &Point| (p.bytes as f64).log10();
    let y = |p: &Point| (p.instructions.max(1) as f64).log10();
    let ((x0, x1), (y0, y1)) = (ends(x), ends(y));
    let (x0, x1, y0, y1) = (x0.floor(), x1.ceil(), y0.floor(), y1.ceil());
    let at_x = |v: f64| MARGIN + (v - x0) / (x1 - x0) * (WIDTH - MARGIN);
    let at_y = |v: f64| HEIGHT - (v - y0) / (y1 - y0) * (HEIGHT - MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Instructions of planning by size of the input</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"30\" font-size=\"15\">Instructions of parse, validate, normalise, plan; grey lines: linear growth</text>\n",
        WIDTH + NAMES,
        HEIGHT + MARGIN,
    );
    for i in x0 as i32..=x1 as i32 {
        let at = at_x(f64::from(i));
        let _ = writeln!(
            out,
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{} bytes</text>",
            HEIGHT + 20.0,
            unit(i)
        );
    }
    for i in y0 as i32..=y1 as i32 {
        let at = at_y(f64::from(i));
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n\
             <line x1=\"{MARGIN}\" y1=\"{at:.1}\" x2=\"{WIDTH}\" y2=\"{at:.1}\" stroke=\"#eeeeee\"/>",
            MARGIN - 6.0,
            at + 4.0,
            unit(i)
        );
    }
    // Linear growth through every whole power on the left.
    for i in y0 as i32 - (x1 - x0) as i32..=y1 as i32 {
        let (from, to) = (f64::from(i), f64::from(i) + (x1 - x0));
        let start = (y0 - from).max(0.0);
        let end = (y1 - from).min(x1 - x0);
        if start < end {
            let _ = writeln!(
                out,
                "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#cccccc\" stroke-dasharray=\"3 4\"/>",
                at_x(x0 + start),
                at_y(from + start),
                at_x(x0 + end),
                at_y(from + end.min(to - from)),
            );
        }
    }
    for (i, (name, points)) in rows.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let line: Vec<String> = points
            .iter()
            .map(|p| format!("{:.1},{:.1}", at_x(x(p)), at_y(y(p))))
            .collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            line.join(" ")
        );
        for p in points {
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
                at_x(x(p)),
                at_y(y(p))
            );
        }
        let row = MARGIN + 20.0 + 22.0 * i as f64;
        let _ = writeln!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{row:.1}\">{name}</text>",
            WIDTH + 12.0,
            row - 4.0,
            WIDTH + 22.0
        );
    }
    out.push_str("</svg>\n");
    out
}

/// A power of ten in words.
fn unit(power: i32) -> String {
    match power {
        9.. => format!("{}G", 10_i64.pow(power as u32 - 9)),
        6..9 => format!("{}M", 10_i64.pow(power as u32 - 6)),
        3..6 => format!("{}k", 10_i64.pow(power as u32 - 3)),
        _ => 10_i64.pow(power.max(0) as u32).to_string(),
    }
}
