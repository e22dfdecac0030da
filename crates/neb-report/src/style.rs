//! What everything looks like: one palette (Okabe and Ito's, which the colour-blind can tell apart), and beside each colour
//! a line style or a fill of its own, so that nothing rests on colour alone.
//!
//! A saved figure carries a style sheet with the light colours. On a page the same rules read CSS variables, which the
//! page sets once for light and once for dark.

/// Whose data a curve, contour or point shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// What was learned: blue, solid lines, filled.
    Learned,
    /// The truth, where it is known: vermilion, dashed.
    Truth,
    /// What was observed: ink, points with error bars.
    Observed,
    /// The simulated pairs: grey, dotted.
    Simulated,
    /// Another method to compare with: green, finely dashed.
    Baseline,
    /// One of several curves of equal rank, each with a colour and a dash of its own.
    Nth(usize),
}

/// How many curves of equal rank differ in colour and dash.
const NTH: usize = 6;

impl Role {
    /// Class of a line.
    pub(crate) fn line(self) -> String {
        format!("nb-line nb-line-{}", self.suffix())
    }

    /// Class of an area.
    pub(crate) fn fill(self) -> String {
        format!("nb-fill-{}", self.suffix())
    }

    /// Class of a dot.
    pub(crate) fn dot(self) -> String {
        format!("nb-dot-{}", self.suffix())
    }

    fn suffix(self) -> String {
        match self {
            Self::Learned => "learned".to_owned(),
            Self::Truth => "truth".to_owned(),
            Self::Observed => "observed".to_owned(),
            Self::Simulated => "simulated".to_owned(),
            Self::Baseline => "baseline".to_owned(),
            Self::Nth(number) => (number % NTH).to_string(),
        }
    }

    fn colour(self) -> &'static str {
        match self {
            Self::Learned => "blue",
            Self::Truth => "vermilion",
            Self::Observed => "ink",
            Self::Simulated => "muted",
            Self::Baseline => "green",
            Self::Nth(number) => {
                ["blue", "vermilion", "green", "purple", "orange", "ink"][number % NTH]
            }
        }
    }

    /// Lengths of dashes and gaps; none for a solid line.
    fn dashes(self) -> &'static str {
        match self {
            Self::Learned | Self::Observed => "none",
            Self::Truth => "6 3",
            Self::Simulated => "1.5 2.5",
            Self::Baseline => "3 2",
            Self::Nth(number) => {
                ["none", "7 3", "2 2", "9 3 2 3", "5 2 1.5 2 1.5 2", "12 4"][number % NTH]
            }
        }
    }
}

/// Name, light and dark value of every colour. Text and axes have a contrast of 4.5 or more against the paper.
const COLOURS: [(&str, &str, &str); 9] = [
    ("paper", "#ffffff", "#15171a"),
    ("ink", "#1b1b1b", "#e9eaec"),
    ("muted", "#5f6368", "#a3a9b1"),
    ("grid", "#e3e5e8", "#30343a"),
    ("blue", "#0072b2", "#56b4e9"),
    ("vermilion", "#d55e00", "#f08a3c"),
    ("green", "#007a5a", "#2fc79b"),
    ("purple", "#b0578c", "#e29cc4"),
    ("orange", "#b87f00", "#e69f00"),
];

/// The size of ordinary text in a figure, in pixels.
pub(crate) const TEXT: f64 = 12.0;

/// The rules of all figures, with `colour` giving the value written for the name of a colour.
fn rules(colour: impl Fn(&str) -> String) -> String {
    let [ink, muted, grid] = ["ink", "muted", "grid"].map(&colour);
    let mut css = format!(
        "\
.nb-text{{fill:{ink};font-size:{TEXT}px}}
.nb-tick{{fill:{ink};font-size:11px}}
.nb-note{{fill:{muted};font-size:11px}}
.nb-axis{{stroke:{muted};stroke-width:1;fill:none}}
.nb-grid{{stroke:{grid};stroke-width:1;fill:none}}
.nb-reference{{stroke:{muted};stroke-width:1;stroke-dasharray:4 3;fill:none}}
.nb-band{{fill:{muted};fill-opacity:0.18;stroke:none}}
.nb-bars{{fill:{blue};fill-opacity:0.35;stroke:{blue};stroke-width:1}}
.nb-line{{fill:none;stroke-width:1.7;stroke-linejoin:round}}
.nb-cold{{fill:{blue};stroke:none;shape-rendering:crispEdges}}
.nb-warm{{fill:{warm};stroke:none;shape-rendering:crispEdges}}
.nb-unknown{{fill:{grid};stroke:none;shape-rendering:crispEdges}}
",
        blue = colour("blue"),
        warm = colour("vermilion")
    );
    let named = [
        Role::Learned,
        Role::Truth,
        Role::Observed,
        Role::Simulated,
        Role::Baseline,
    ];
    let roles = named.into_iter().chain((0..NTH).map(Role::Nth));
    for role in roles {
        let (name, colour) = (role.suffix(), colour(role.colour()));
        let dashes = role.dashes();
        css.push_str(&format!(
            "\
.nb-line-{name}{{stroke:{colour};stroke-dasharray:{dashes}}}
.nb-fill-{name}{{fill:{colour};fill-opacity:0.2;fill-rule:evenodd;stroke:none}}
.nb-dot-{name}{{fill:{colour};stroke:{colour};stroke-width:1.3}}
"
        ));
    }
    css
}

/// The style sheet of a saved figure.
pub(crate) fn of_file() -> String {
    let value = |name: &str| {
        let found = COLOURS.iter().find(|colour| colour.0 == name);
        found.expect("a colour of the palette").1.to_owned()
    };
    rules(value)
}

/// The style sheet of a page: the variables in light and dark, and the rules that read them.
pub(crate) fn of_page() -> String {
    colours(":root") + &rules(|name| format!("var(--{name})"))
}

/// The variables of what a selector chooses, in light and dark.
pub(crate) fn colours(selector: &str) -> String {
    let variables = |dark: bool| {
        let each = COLOURS.iter().map(|(name, light, night)| {
            let value = if dark { night } else { light };
            format!("--{name}:{value};")
        });
        each.collect::<String>()
    };
    format!(
        "{selector}{{color-scheme:light dark;{}}}\n@media screen and (prefers-color-scheme:dark){{{selector}{{{}}}}}\n",
        variables(false),
        variables(true)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of a colour `#rrggbb` (WCAG 2).
    fn luminance(colour: &str) -> f64 {
        let part = |place: usize| {
            let value = u8::from_str_radix(&colour[place..place + 2], 16).unwrap();
            let value = f64::from(value) / 255.0;
            if value <= 0.040_45 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// 4.5 is what WCAG asks of text, 3 of graphics.
    #[test]
    fn everything_stands_out_from_the_paper_in_light_and_dark() {
        let (_, paper_light, paper_dark) = COLOURS[0];
        for (name, light, dark) in &COLOURS[1..] {
            let least = match *name {
                "ink" | "muted" => 4.5,
                "grid" => 1.1,
                _ => 3.0,
            };
            assert!(contrast(light, paper_light) >= least, "{name} light");
            assert!(contrast(dark, paper_dark) >= least, "{name} dark");
        }
    }

    #[test]
    fn roles_differ_in_more_than_colour() {
        let nth: Vec<&str> = (0..NTH).map(|n| Role::Nth(n).dashes()).collect();
        for (index, dashes) in nth.iter().enumerate() {
            assert!(!nth[..index].contains(dashes));
        }
        assert_ne!(Role::Learned.dashes(), Role::Truth.dashes());
        assert_ne!(Role::Simulated.dashes(), Role::Truth.dashes());
        assert_ne!(Role::Simulated.dashes(), Role::Baseline.dashes());
    }

    #[test]
    fn a_saved_figure_needs_no_page() {
        assert!(!of_file().contains("var("));
        assert!(of_page().contains("prefers-color-scheme:dark"));
    }
}
