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

/// Parses the last moment of a time limit: `2026-12-01`, `7d`, `12h`, `today`, `tomorrow`, or a
/// weekday. A day ends at midnight where the user is.
pub fn until(text: &str, now: Millis) -> Result<Millis, String> {
    let ahead = match when(text) {
        Ok(When::Ago(length)) => now.checked_add(length),
        Ok(When::Moment(moment)) => Some(moment),
        _ => end_of_day(text, now),
    };
    let until = ahead.ok_or_else(|| {
        format!("'{text}' is not a time limit; write 2026-12-01, 7d, 12h, tomorrow or friday")
    })?;
    match until > now {
        true => Ok(until),
        false => Err(format!("{text} is over already; a time limit lies ahead")),
    }
}

fn end_of_day(text: &str, now: Millis) -> Option<Millis> {
    let zone = jiff::tz::TimeZone::system();
    let now = jiff::Timestamp::from_millisecond(now).ok()?;
    let today = now.to_zoned(zone.clone()).date();
    let text = text.to_lowercase();
    let days = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    let weekday = days
        .iter()
        .position(|day| text.len() >= 3 && day.starts_with(&text));
    let day = match (text.as_str(), weekday) {
        ("today", _) => today,
        ("tomorrow", _) => today.tomorrow().ok()?,
        (_, Some(at)) => {
            let ahead =
                (at as i64 - i64::from(today.weekday().to_monday_zero_offset())).rem_euclid(7);
            today.checked_add(jiff::Span::new().days(ahead)).ok()?
        }
        (date, None) => date.parse().ok()?,
    };
    let next = day.tomorrow().ok()?.to_zoned(zone).ok()?;
    Some(next.timestamp().as_millisecond() - 1)
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

    #[test]
    fn a_time_limit_lies_ahead() {
        // A Thursday, 00:00 in UTC.
        let now = 0;
        let zone = jiff::tz::TimeZone::system();
        let first = jiff::Timestamp::UNIX_EPOCH.to_zoned(zone);
        let offset = Millis::from(first.offset().seconds()) * 1000;
        let limit = |text| until(text, now).map(|it| it + offset);
        assert_eq!(until("7d", now), Ok(7 * DAY));
        assert_eq!(until("12h", now), Ok(DAY / 2));
        // Only where local days begin with those of UTC.
        if offset == 0 {
            assert_eq!(limit("today"), Ok(DAY - 1));
            assert_eq!(limit("thursday"), Ok(DAY - 1));
            assert_eq!(limit("Fri"), Ok(2 * DAY - 1));
            assert_eq!(limit("wednesday"), Ok(7 * DAY - 1));
            assert_eq!(limit("1970-01-03"), Ok(3 * DAY - 1));
        }
        for wrong in ["", "0d", "fr", "1969-12-30", "soon", "99999999999999999d"] {
            assert!(until(wrong, now).is_err(), "{wrong}");
        }
    }
}
