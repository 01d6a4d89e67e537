//! Parses times as people write them: `30d`, `12h`, `today`, `2026-11-01`.

use foreword_core::model::Millis;
use foreword_core::text::day_start;

/// A time as people write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Ago(Millis),
    /// A day, by its first moment in UTC.
    Day(Millis),
    Moment(Millis),
    Today,
}

const DAY: Millis = 24 * 3_600_000;

pub fn when(text: &str) -> Result<When, String> {
    let ago = |unit: char, length: Millis| {
        let number: Millis = text.strip_suffix(unit)?.parse().ok()?;
        let ago = number.checked_mul(length).filter(|_| number >= 0)?;
        Some(When::Ago(ago))
    };
    let day = || day_start(text).map(When::Day);
    // The form in which `--format json` prints times.
    let moment = || {
        let moment: jiff::Timestamp = text.parse().ok()?;
        Some(When::Moment(moment.as_millisecond()))
    };
    match text {
        "today" => Some(When::Today),
        _ => ago('d', DAY)
            .or_else(|| ago('h', 3_600_000))
            .or_else(|| ago('w', 7 * DAY))
            .or_else(moment)
            .or_else(day),
    }
    .ok_or_else(|| format!("'{text}' is not a time; write 30d, 12h, today or 2026-11-01"))
}

impl When {
    pub fn start(self, now: Millis) -> Millis {
        match self {
            When::Ago(length) => now.saturating_sub(length),
            When::Day(start) | When::Moment(start) => start,
            When::Today => now - now.rem_euclid(DAY),
        }
    }

    pub fn end(self, now: Millis) -> Millis {
        match self {
            When::Ago(_) | When::Moment(_) => self.start(now),
            When::Day(_) | When::Today => self.start(now) + DAY - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_how_long_ago_or_a_day() {
        let now = 10 * DAY + 5;
        let span = |text| when(text).map(|it| (it.start(now), it.end(now)));
        assert_eq!(span("2d"), Ok((8 * DAY + 5, 8 * DAY + 5)));
        assert_eq!(span("today"), Ok((10 * DAY, 11 * DAY - 1)));
        assert_eq!(span("1970-01-03"), Ok((2 * DAY, 3 * DAY - 1)));
        assert_eq!(
            span("1970-01-03T00:00:01Z"),
            Ok((2 * DAY + 1000, 2 * DAY + 1000))
        );
        for wrong in [
            "",
            "d",
            "-1d",
            "99999999999999999999d",
            "9999999999999999d",
            "yesterday",
            "2026-13-01",
        ] {
            assert!(when(wrong).is_err(), "{wrong}");
        }
    }
}
