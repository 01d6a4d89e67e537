//! Times as people read and write them: in the time zone of this machine, which `TZ` or
//! `/etc/localtime` names. JSON and everything that is stored has UTC (`foreword_core::text`).

use std::sync::LazyLock;

use foreword_core::model::Millis;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Reading the time zone takes some file accesses, so it is read once.
static ZONE: LazyLock<TimeZone> = LazyLock::new(TimeZone::system);

fn zoned(at: Millis) -> Zoned {
    let at = Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH);
    at.to_zoned(ZONE.clone())
}

/// `2026-11-14`
pub fn date(at: Millis) -> String {
    zoned(at).strftime("%Y-%m-%d").to_string()
}

/// `2026-11-14 09:30`
pub fn minute(at: Millis) -> String {
    zoned(at).strftime("%Y-%m-%d %H:%M").to_string()
}

/// A log line whose time, its first word, is in local time: `2026-11-14 09:30:12 the worker ended`.
pub fn log_line(line: &str) -> String {
    let (time, rest) = line.split_once(' ').unwrap_or((line, ""));
    match time.parse::<Timestamp>() {
        Ok(at) => {
            let time = at.to_zoned(ZONE.clone()).strftime("%Y-%m-%d %H:%M:%S");
            format!("{time} {rest}").trim_end().to_owned()
        }
        Err(_) => line.to_owned(),
    }
}

/// The day of a time.
pub fn day(at: Millis) -> Date {
    zoned(at).date()
}

/// The first moment of a day. It is not always midnight: in some zones summer time begins then.
pub fn start_of(day: Date) -> Millis {
    let start = day.to_zoned(ZONE.clone());
    start.map_or(0, |it| it.timestamp().as_millisecond())
}

/// The last moment of a day.
pub fn end_of(day: Date) -> Millis {
    day.tomorrow()
        .map_or(Millis::MAX, |next| start_of(next) - 1)
}
