//! Bars in SVG, ours above the peer's.

/// Both managers' values of one thing.
pub(super) struct Pair {
    pub(super) label: String,
    pub(super) ours: f64,
    pub(super) peer: f64,
}

const WIDTH: f64 = 800.0;
const LABEL: f64 = 230.0;
const VALUE: f64 = 80.0;
const ROW: f64 = 40.0;
const TOP: f64 = 60.0;

/// A chart; `text` prints a value.
pub(super) fn bars(title: &str, pairs: &[Pair], text: impl Fn(f64) -> String) -> String {
    let most = pairs.iter().flat_map(|pair| [pair.ours, pair.peer]).fold(f64::MIN_POSITIVE, f64::max);
    let height = pairs.iter().fold(TOP, |height, _| height + ROW);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\" role=\"img\">\n<title>{title}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"10\" y=\"24\" font-size=\"16\" fill=\"#222\">{title}</text>\n\
         <rect x=\"{LABEL}\" y=\"36\" width=\"10\" height=\"10\" fill=\"{OURS}\"/>\
         <text x=\"{}\" y=\"45\" fill=\"#222\">ours</text>\n\
         <rect x=\"{}\" y=\"36\" width=\"10\" height=\"10\" fill=\"{PEER}\"/>\
         <text x=\"{}\" y=\"45\" fill=\"#222\">upstream</text>\n",
        LABEL + 15.0,
        LABEL + 65.0,
        LABEL + 80.0,
    );
    let mut y = TOP;
    for pair in pairs {
        svg += &label(&pair.label, y + 19.0);
        svg += &bar(pair.ours / most, y + 2.0, OURS, &text(pair.ours));
        svg += &bar(pair.peer / most, y + 17.0, PEER, &text(pair.peer));
        y += ROW;
    }
    svg + "</svg>\n"
}

fn label(text: &str, y: f64) -> String {
    format!("<text x=\"10\" y=\"{y}\" fill=\"#222\">{text}</text>\n")
}

/// A bar of that part of the chart's width.
fn bar(part: f64, y: f64, colour: &str, text: &str) -> String {
    let width = (part * (WIDTH - LABEL - VALUE)).max(1.0);
    format!(
        "<rect x=\"{LABEL}\" y=\"{y}\" width=\"{width:.1}\" height=\"13\" fill=\"{colour}\"/>\
         <text x=\"{:.1}\" y=\"{}\" font-size=\"11\" fill=\"#444\">{text}</text>\n",
        LABEL + width + 5.0,
        y + 11.0,
    )
}

const OURS: &str = "#1b7a4b";
const PEER: &str = "#9aa5b1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_fills_the_chart_and_others_are_in_proportion() {
        let svg = bars("Memory", &[Pair { label: "idle".to_owned(), ours: 25.0, peer: 100.0 }], |it| format!("{it}"));
        assert!(svg.contains("width=\"490.0\"") && svg.contains("width=\"122.5\""), "{svg}");
    }
}
