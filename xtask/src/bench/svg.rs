//! A plain bar chart in SVG.

use std::fmt::Write;

use super::report::Bar;

const LABEL_WIDTH: f64 = 230.0;
const PLOT_WIDTH: f64 = 560.0;
const BAR: f64 = 14.0;
const STEP: f64 = 19.0;
const GROUP_GAP: f64 = 12.0;
const TOP: f64 = 46.0;

/// Horizontal bars of ratios under `title`, with a line at 1.
pub fn chart(title: &str, bars: &[Bar]) -> String {
    let top = bars.iter().map(|bar| bar.mean).fold(1.5, f64::max);
    let scale = PLOT_WIDTH / top;
    let gaps = bars.iter().filter(|bar| bar.first).count() as f64;
    let height = TOP + bars.len() as f64 * STEP + gaps * GROUP_GAP + 12.0;
    let width = LABEL_WIDTH + PLOT_WIDTH + 70.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
        escape(title)
    );
    let mut y = TOP;
    for bar in bars {
        if bar.first {
            y += GROUP_GAP;
        }
        let (colour, weight) = match (bar.mean >= 1.0, bar.first) {
            (true, true) => ("#1f5fa8", "bold"),
            (true, false) => ("#6fa3dc", "normal"),
            (false, true) => ("#b03a2e", "bold"),
            (false, false) => ("#dc8a7f", "normal"),
        };
        let (length, text_y) = (bar.mean * scale, y + BAR - 3.0);
        let (label_x, value_x) = (LABEL_WIDTH - 8.0, LABEL_WIDTH + length + 5.0);
        writeln!(
            svg,
            "<text x=\"{label_x:.1}\" y=\"{text_y:.1}\" text-anchor=\"end\" font-weight=\"{weight}\">{}</text>\
             <rect x=\"{LABEL_WIDTH:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{BAR:.1}\" fill=\"{colour}\"/>\
             <text x=\"{value_x:.1}\" y=\"{text_y:.1}\">{:.2}</text>",
            escape(&bar.label),
            bar.mean
        )
        .expect("strings take all");
        y += STEP;
    }
    let one = LABEL_WIDTH + scale;
    writeln!(
        svg,
        "<line x1=\"{one:.1}\" y1=\"{TOP:.1}\" x2=\"{one:.1}\" y2=\"{y:.1}\" stroke=\"black\" stroke-dasharray=\"4 3\"/>\n</svg>"
    )
    .expect("strings take all");
    svg
}

/// Text with the characters that XML reserves replaced.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
