//! A plot of what was reached, as SVG. Pure.

use std::fmt::Write as _;

/// Tasks that landed in the time of one look.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) serial: f64,
    pub(super) queue: f64,
    pub(super) promised: f64,
}

const ROW: f64 = 46.0;
const LEFT: f64 = 170.0;
const WIDTH: f64 = 520.0;

pub(super) fn svg(bars: &[Bar]) -> String {
    let values = bars
        .iter()
        .flat_map(|bar| [bar.serial, bar.queue, bar.promised]);
    let most = values.fold(1.0, f64::max);
    let rows = u32::try_from(bars.len()).unwrap_or(u32::MAX);
    let height = f64::from(rows) * ROW + 60.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"20\" y=\"24\" font-size=\"14\">Tasks landed in the time of one gate run: one by one (grey), the queue (blue), promised (line)</text>\n"
    );
    let mut top = 44.0;
    for bar in bars {
        let length = |value: f64| value / most * WIDTH;
        let _ = writeln!(
            text,
            "<text x=\"20\" y=\"{:.1}\">{}</text>",
            top + 20.0,
            bar.name
        );
        for (offset, value, colour) in [(2.0, bar.serial, "#999"), (18.0, bar.queue, "#2a6fdb")] {
            let (y, width) = (top + offset, length(value));
            let _ = writeln!(
                text,
                "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"14\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{:.1}\">{value:.2}</text>",
                LEFT + width + 6.0,
                y + 11.0
            );
        }
        let x = LEFT + length(bar.promised);
        let _ = writeln!(
            text,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"black\" stroke-width=\"2\"/>",
            top,
            top + 34.0
        );
        top += ROW;
    }
    text.push_str("</svg>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_is_there() {
        let bar = Bar {
            name: "sleep, 5 % fail".into(),
            serial: 0.95,
            queue: 5.0,
            promised: 5.2,
        };
        let text = svg(&[bar.clone(), bar]);
        assert_eq!(text.matches("<rect x").count(), 4);
        assert_eq!(text.matches("<line").count(), 2);
        assert!(text.ends_with("</svg>\n"));
    }
}
