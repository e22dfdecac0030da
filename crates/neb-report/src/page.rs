//! The page: one HTML file with everything in it.

use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;

use crate::figure::Figure;
use crate::style;
use crate::svg::escape;
use crate::verdict::Verdict;

/// What is on the page, from top to bottom.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its title.
    pub title: String,
    /// What comes first.
    pub verdict: Verdict,
    /// Pictures and words.
    pub sections: Vec<Section>,
    /// Numbers: configuration, versions, seeds, timings.
    pub tables: Vec<Table>,
    /// The settings, as TOML.
    pub config: String,
}

/// A part of the page.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// Its contents.
    pub blocks: Vec<Block>,
}

/// A picture, words or numbers.
#[derive(Clone, Debug)]
pub enum Block {
    /// A figure and its caption.
    Figure(Figure, String),
    /// A paragraph.
    Words(String),
    /// A table.
    Table(Table),
}

/// A table with a heading; its first row names the columns.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Its heading.
    pub heading: String,
    /// Words above it; may be empty.
    pub note: String,
    /// Names of the columns; none for a table of names and values.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

/// How the verdict looks, wherever it stands.
const VERDICT_STYLE: &str = include_str!("verdict.css");

/// What the template reads.
#[derive(Serialize)]
struct PageContext<'a> {
    title: &'a str,
    style: String,
    verdict_style: &'static str,
    verdict: String,
    sections: Vec<SectionContext>,
    tables: &'a [Table],
    config: &'a str,
}

#[derive(Serialize)]
struct TopContext<'a> {
    title: &'a str,
    style: String,
    verdict_style: &'static str,
    verdict: String,
}

#[derive(Serialize)]
struct VerdictContext<'a> {
    verdict: &'a Verdict,
}

#[derive(Serialize)]
struct SectionContext {
    heading: String,
    blocks: Vec<BlockContext>,
}

#[derive(Default, Serialize)]
struct BlockContext {
    svg: Option<String>,
    name: String,
    width: f64,
    text: String,
    number: usize,
    table: Option<Table>,
}

impl Report {
    /// All figures, in their order.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        let blocks = self.sections.iter().flat_map(|section| &section.blocks);
        blocks.filter_map(|block| match block {
            Block::Figure(figure, _) => Some(figure),
            Block::Words(_) | Block::Table(_) => None,
        })
    }

    /// The top of the page, title and verdict, as a part of another page such as a notebook.
    pub fn top(&self) -> String {
        let top = TopContext {
            title: &self.title,
            style: style::colours(".neb-top"),
            verdict_style: VERDICT_STYLE,
            verdict: self.verdict_html(),
        };
        render("top.html", include_str!("top.html"), top)
    }

    fn verdict_html(&self) -> String {
        let verdict = VerdictContext {
            verdict: &self.verdict,
        };
        render("verdict.html", include_str!("verdict.html"), verdict)
    }

    /// The page.
    pub fn to_html(&self) -> String {
        let mut number = 0;
        let sections: Vec<SectionContext> = self
            .sections
            .iter()
            .map(|section| SectionContext {
                heading: section.heading.clone(),
                blocks: section
                    .blocks
                    .iter()
                    .map(|block| match block {
                        Block::Figure(figure, caption) => {
                            number += 1;
                            BlockContext {
                                svg: Some(figure.to_inline()),
                                name: figure.name.clone(),
                                width: figure.width,
                                text: caption.clone(),
                                number,
                                table: None,
                            }
                        }
                        Block::Words(words) => BlockContext {
                            text: words.clone(),
                            ..BlockContext::default()
                        },
                        Block::Table(table) => BlockContext {
                            table: Some(table.clone()),
                            ..BlockContext::default()
                        },
                    })
                    .collect(),
            })
            .collect();
        let page = PageContext {
            title: &self.title,
            style: style::of_page(),
            verdict_style: VERDICT_STYLE,
            verdict: self.verdict_html(),
            sections,
            tables: &self.tables,
            config: &self.config,
        };
        render("page.html", include_str!("page.html"), page)
    }
}

/// A template with its values.
fn render(name: &str, text: &str, values: impl Serialize) -> String {
    let mut environment = Environment::new();
    environment.add_filter("words", |text: String| {
        Value::from_safe_string(words(&text))
    });
    environment
        .render_named_str(name, text, Serde(values))
        .expect("the template is correct and knows these values")
}

/// Text as HTML, with what stands between backticks as code.
fn words(text: &str) -> String {
    let mut html = String::new();
    for (number, part) in text.split('`').enumerate() {
        let part = escape(part);
        if number % 2 == 1 {
            html.push_str(&format!("<code>{part}</code>"));
        } else {
            html.push_str(&part);
        }
    }
    html
}
