//! A finished figure: part of a page, a file of its own (SVG), or pixels (PNG).

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{self, fontdb};

use crate::style;
use crate::svg::{Svg, escape};

/// A figure and what it is called.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Short name, unique on its page: also the name of its files.
    pub name: String,
    /// What it shows, for readers who cannot see it.
    pub title: String,
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    body: String,
}

/// Why a figure could not become pixels.
#[derive(Debug, thiserror::Error)]
#[error("figure {name}: {reason}")]
pub struct PngError {
    name: String,
    reason: String,
}

impl Figure {
    pub(crate) fn new(name: &str, title: &str, [width, height]: [f64; 2], svg: Svg) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            width: width.ceil(),
            height: height.ceil(),
            body: svg.into_body(),
        }
    }

    /// The element to put into a page that holds [`crate::style_sheet`].
    pub fn to_inline(&self) -> String {
        self.element("", &self.body)
    }

    /// A file of its own, light, with its style.
    pub fn to_svg(&self) -> String {
        let paper = r##"<rect width="100%" height="100%" fill="#ffffff"/>"##;
        let body = format!(
            "<style>\n{}</style>\n{paper}\n{}",
            style::of_file(),
            self.body
        );
        let size = format!(
            r#" width="{}" height="{}" font-family="Helvetica, Arial, DejaVu Sans, sans-serif""#,
            self.width, self.height
        );
        self.element(&size, &body)
    }

    fn element(&self, attributes: &str, body: &str) -> String {
        let (name, title) = (escape(&self.name), escape(&self.title));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\"{attributes} role=\"img\" \
             aria-labelledby=\"{name}-title\">\n<title id=\"{name}-title\">{title}</title>\n{body}</svg>\n",
            self.width, self.height
        )
    }

    /// The figure as a PNG image, `scale` pixels for each of its own, in a font that is part of the program.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn to_png(&self, scale: f32) -> Result<Vec<u8>, PngError> {
        let failed = |reason: String| PngError {
            name: self.name.clone(),
            reason,
        };
        let options = usvg::Options {
            fontdb: Arc::clone(fonts()),
            font_family: "DejaVu Sans".to_owned(),
            ..usvg::Options::default()
        };
        let tree = usvg::Tree::from_str(&self.to_svg(), &options)
            .map_err(|error| failed(error.to_string()))?;
        let pixels = |length: f64| (length * f64::from(scale)).ceil() as u32;
        let mut pixmap = Pixmap::new(pixels(self.width), pixels(self.height))
            .ok_or_else(|| failed("no memory for its pixels".to_owned()))?;
        pixmap.fill(Color::WHITE);
        let transform = Transform::from_scale(scale, scale);
        resvg::render(&tree, transform, &mut pixmap.as_mut());
        pixmap
            .encode_png()
            .map_err(|error| failed(error.to_string()))
    }
}

/// Fonts of the program itself, so that text is there on machines without any.
fn fonts() -> &'static Arc<fontdb::Database> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    FONTS.get_or_init(|| {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.load_font_data(dejavu::sans::bold().to_vec());
        for set in [
            fontdb::Database::set_sans_serif_family,
            fontdb::Database::set_serif_family,
        ] {
            set(&mut fonts, "DejaVu Sans");
        }
        Arc::new(fonts)
    })
}
