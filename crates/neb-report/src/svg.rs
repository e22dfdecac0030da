//! The pen: SVG elements with classes, numbers rounded to a hundredth of a pixel. What the classes look like is decided
//! by the style sheet alone ([`crate::style`]).

use std::fmt::Write;

/// Where a text is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

/// A rectangle in pixels, y downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Frame {
    /// Right edge.
    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    /// Lower edge.
    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }
}

/// The elements of a picture.
#[derive(Clone, Debug)]
pub struct Svg {
    /// Begins the ids of this picture, which a page must not hold twice.
    name: String,
    body: String,
    clips: usize,
}

impl Svg {
    /// An empty picture; its name must be unlike that of others on the same page.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            body: String::new(),
            clips: 0,
        }
    }

    /// What was drawn.
    pub fn into_body(self) -> String {
        self.body
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: [f64; 2], to: [f64; 2]) {
        let (x1, y1, x2, y2) = (
            number(from[0]),
            number(from[1]),
            number(to[0]),
            number(to[1]),
        );
        self.add(format!(
            r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#
        ));
    }

    /// A rectangle.
    pub fn rect(&mut self, class: &str, frame: Frame) {
        let (x, y) = (number(frame.x), number(frame.y));
        let (width, height) = (number(frame.width), number(frame.height));
        self.add(format!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#
        ));
    }

    /// A dot.
    pub fn circle(&mut self, class: &str, at: [f64; 2], radius: f64) {
        let (x, y, r) = (number(at[0]), number(at[1]), number(radius));
        self.add(format!(
            r#"<circle class="{class}" cx="{x}" cy="{y}" r="{r}"/>"#
        ));
    }

    /// Lines through points; several in one element. Each may be closed.
    pub fn path(&mut self, class: &str, lines: &[Vec<[f64; 2]>], closed: bool) {
        let mut d = String::new();
        for line in lines.iter().filter(|line| line.len() > 1) {
            for (index, point) in line.iter().enumerate() {
                let command = if index == 0 { 'M' } else { 'L' };
                let _ = write!(d, "{command}{} {}", number(point[0]), number(point[1]));
            }
            if closed {
                d.push('Z');
            }
        }
        if !d.is_empty() {
            self.add(format!(r#"<path class="{class}" d="{d}"/>"#));
        }
    }

    /// Rectangles in one element, of this opacity.
    pub fn cells(&mut self, class: &str, opacity: f64, cells: &[Frame]) {
        let mut d = String::new();
        for cell in cells {
            let (x, y) = (number(cell.x), number(cell.y));
            let (width, height) = (number(cell.width), number(cell.height));
            let _ = write!(d, "M{x} {y}h{width}v{height}h-{width}z");
        }
        if !d.is_empty() {
            let opacity = number(opacity);
            self.add(format!(
                r#"<path class="{class}" fill-opacity="{opacity}" d="{d}"/>"#
            ));
        }
    }

    /// A text whose baseline begins at, is centred on, or ends at a point.
    pub fn text(&mut self, class: &str, at: [f64; 2], anchor: Anchor, text: &str) {
        self.turned_text(class, at, anchor, 0.0, text);
    }

    /// The same, turned by `degrees` about the point.
    pub fn turned_text(
        &mut self,
        class: &str,
        at: [f64; 2],
        anchor: Anchor,
        degrees: f64,
        text: &str,
    ) {
        let (x, y) = (number(at[0]), number(at[1]));
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let turn = if degrees == 0.0 {
            String::new()
        } else {
            format!(r#" transform="rotate({} {x} {y})""#, number(degrees))
        };
        self.add(format!(
            r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}"{turn}>{}</text>"#,
            escape(text)
        ));
    }

    /// What `draw` draws, cut off outside the frame.
    pub fn clipped(&mut self, frame: Frame, draw: impl FnOnce(&mut Self)) {
        let id = format!("{}-clip-{}", self.name, self.clips);
        self.clips += 1;
        let (x, y) = (number(frame.x), number(frame.y));
        let (width, height) = (number(frame.width), number(frame.height));
        self.add(format!(
            r##"<clipPath id="{id}"><rect x="{x}" y="{y}" width="{width}" height="{height}"/></clipPath><g clip-path="url(#{id})">"##
        ));
        draw(self);
        self.add("</g>".to_owned());
    }

    fn add(&mut self, element: String) {
        self.body.push_str(&element);
        self.body.push('\n');
    }
}

/// A number with at most two decimals.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}

/// Text as it may stand in XML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_never_minus_zero() {
        let shown = [1.0, -0.001, 0.126, 1234.5, -2.50].map(number);
        assert_eq!(shown, ["1", "0", "0.13", "1234.5", "-2.5"]);
    }

    #[test]
    fn text_cannot_leave_its_element() {
        assert_eq!(
            escape("a<b & \"c\">\u{1}"),
            "a&lt;b &amp; &quot;c&quot;&gt; "
        );
    }
}
