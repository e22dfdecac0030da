//! Axes: a range, round ticks inside it, and their labels.

/// One axis of a panel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// Value at the left or lower end.
    pub low: f64,
    /// Value at the right or upper end.
    pub high: f64,
    /// Ticks are no closer than this.
    least_step: f64,
}

impl Axis {
    /// An axis over exactly this range; one without extent is widened.
    pub fn new(low: f64, high: f64) -> Self {
        let margin = match high > low {
            true => 0.0,
            false if low == 0.0 => 1.0,
            false => 0.1 * low.abs(),
        };
        Self {
            low: low - margin,
            high: high.max(low) + margin,
            least_step: 0.0,
        }
    }

    /// The same axis of a quantity that is counted: its ticks are whole numbers.
    pub fn counted(self) -> Self {
        Self {
            least_step: 1.0,
            ..self
        }
    }

    /// An axis over all finite values, with this share of their extent as margin at both ends. None where there is no value.
    pub fn around(values: impl IntoIterator<Item = f64>, margin: f64) -> Option<Self> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.into_iter().filter(|value| value.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        let room = margin * (high - low);
        (low <= high).then(|| Self::new(low - room, high + room))
    }

    /// Where a value lies: 0 at the low end, 1 at the high one.
    pub fn place(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// Whether a value lies on the axis.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Round values inside the range, about `count` of them and at least two unless too few whole numbers are inside, and
    /// their labels.
    pub fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        let mut wanted = count.max(2) as f64;
        loop {
            let step = round_step((self.high - self.low) / wanted).max(self.least_step);
            let ticks = multiples(self.low, self.high, step);
            if ticks.len() >= 2 || step == self.least_step {
                return ticks
                    .into_iter()
                    .map(|tick| (tick, label(tick, step)))
                    .collect();
            }
            wanted *= 1.5;
        }
    }
}

/// The least of 1, 2, 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let digits = step / power;
    let round = [1.0, 2.0, 5.0].into_iter().find(|&r| digits <= r * 1.0001);
    round.unwrap_or(10.0) * power
}

fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    let slack = 1e-9 * (high - low) / step;
    let first = (low / step - slack).ceil();
    let last = (high / step + slack).floor();
    let count = (last - first).max(-1.0) as usize + usize::from(last >= first);
    (0..count)
        .map(|index| (first + index as f64) * step)
        .collect()
}

/// A tick with the decimals its step needs; powers of ten apart where there are many digits.
fn label(value: f64, step: f64) -> String {
    let decimals = (-(step * 1.0001).log10().floor()).max(0.0) as usize;
    let minus = |text: String| text.replace('-', "\u{2212}");
    if value == 0.0 || value.abs() < 1e-9 * step {
        return "0".to_owned();
    }
    if decimals <= 4 && value.abs() < 1e5 {
        return minus(format!("{value:.decimals$}"));
    }
    let exponent = value.abs().log10().floor();
    let digits = (exponent - (step * 1.0001).log10().floor()).max(0.0) as usize;
    let mantissa = format!("{:.digits$}", value / 10f64.powf(exponent));
    minus(format!("{mantissa}e{exponent}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranges of every size and place: ticks lie inside, are evenly spaced, leave no more than two steps free at an end,
    /// and have labels that tell them apart and read as their value.
    #[test]
    fn ticks_cover_every_range() {
        for exponent in -12..=12 {
            for (low, high) in [(0.0, 1.0), (-3.3, 7.1), (0.98, 1.02), (-1.0, -0.13)] {
                let scale = 10f64.powi(exponent) * 1.37;
                let axis = Axis::new(low * scale, high * scale);
                for count in 2..9 {
                    let ticks = axis.ticks(count);
                    let step = ticks[1].0 - ticks[0].0;
                    assert!(ticks.len() >= 2 && ticks.len() <= 3 * count);
                    assert!(ticks[0].0 - axis.low < 1.0001 * step);
                    assert!(axis.high - ticks.last().unwrap().0 < 1.0001 * step);
                    for pair in ticks.windows(2) {
                        assert!((pair[1].0 - pair[0].0 - step).abs() < 1e-6 * step);
                        assert_ne!(pair[0].1, pair[1].1);
                    }
                    for (value, label) in &ticks {
                        let read: f64 = label.replace('\u{2212}', "-").parse().unwrap();
                        assert!((read - value).abs() <= 0.01 * step, "{label} for {value}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_counted_has_whole_ticks() {
        let labels = |low, high| -> Vec<String> {
            let ticks = Axis::new(low, high).counted().ticks(5);
            ticks.into_iter().map(|(_, label)| label).collect()
        };
        assert_eq!(labels(0.97, 3.03), ["1", "2", "3"]);
        assert_eq!(labels(0.9, 1.1), ["1"]);
        assert_eq!(labels(0.0, 40.0), ["0", "10", "20", "30", "40"]);
    }

    #[test]
    fn a_range_without_extent_is_widened() {
        let axis = Axis::around([2.0, 2.0, f64::NAN], 0.1).unwrap();
        assert!(axis.low < 2.0 && axis.high > 2.0);
        assert!(Axis::around([f64::NAN], 0.1).is_none());
    }
}
