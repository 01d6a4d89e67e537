//! Parses times as people write them: `30d`, `12h`, `today`, `2026-11-01`. A day is one of this
//! machine's time zone.

use foreword_core::model::Millis;
use jiff::civil::Date;

use crate::local_time;

/// A time as people write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Ago(Millis),
    Day(Date),
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
    let day = || text.parse().ok().map(When::Day);
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
            When::Day(day) => local_time::start_of(day),
            When::Moment(start) => start,
            When::Today => local_time::start_of(local_time::day(now)),
        }
    }

    pub fn end(self, now: Millis) -> Millis {
        match self {
            When::Ago(_) | When::Moment(_) => self.start(now),
            When::Day(day) => local_time::end_of(day),
            When::Today => local_time::end_of(local_time::day(now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_how_long_ago_or_a_day() {
        let day = |text: &str| local_time::start_of(text.parse().unwrap());
        let now = day("1970-01-11") + 5;
        let span = |text| when(text).map(|it| (it.start(now), it.end(now)));
        assert_eq!(span("2d"), Ok((now - 2 * DAY, now - 2 * DAY)));
        assert_eq!(span("today"), Ok((now - 5, day("1970-01-12") - 1)));
        let third = (day("1970-01-03"), day("1970-01-04") - 1);
        assert_eq!(span("1970-01-03"), Ok(third));
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
