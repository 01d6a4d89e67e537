//! The day or time that a question names: "in March", "2026-03-04", "last Tuesday", "three weeks
//! ago".

use std::ops::Range;

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _};

use crate::model::Millis;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];
const NUMBERS: [&str; 13] = [
    "", "a", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
];

/// When that was, seen from now; none if the question names no time.
pub(super) fn named(question: &str, now: Millis) -> Option<Range<Millis>> {
    let today = Timestamp::from_millisecond(now)
        .ok()?
        .to_zoned(TimeZone::UTC)
        .date();
    let question = question.to_lowercase();
    let words = question.split(|it: char| !(it.is_alphanumeric() || it == '-'));
    let words: Vec<&str> = words.filter(|it| !it.is_empty()).collect();
    let days = (0..words.len())
        .find_map(|at| time(&words[at..], at.checked_sub(1).map(|it| words[it]), today))?;
    let start = |day: Date| {
        Some(
            day.to_zoned(TimeZone::UTC)
                .ok()?
                .timestamp()
                .as_millisecond(),
        )
    };
    Some(start(days.start)?..start(days.end)?)
}

/// The time that these words begin with.
fn time(words: &[&str], before: Option<&str>, today: Date) -> Option<Range<Date>> {
    let next = |at: usize| words.get(at).copied().unwrap_or_default();
    let around = |day: Date, span: Span| {
        Some(day.checked_sub(span).ok()?..day.checked_add(span).ok()?.tomorrow().ok()?)
    };
    let past = |span: Span| today.checked_sub(span).ok();
    let index = |names: &[&str], word: &str| names.iter().position(|it| *it == word);
    if let Ok(day) = words[0].parse::<Date>() {
        return around(day, 0.days());
    }
    if let Some(month) = index(&MONTHS, words[0]) {
        let month = month as i8 + 1;
        let number = |word: &str| {
            word.trim_end_matches(|it: char| it.is_alphabetic())
                .parse::<i16>()
                .ok()
        };
        // "may" is a verb, too.
        let dated = [Some(next(1)), before]
            .into_iter()
            .flatten()
            .find_map(number);
        if dated.is_none() && !matches!(before, Some("in" | "last" | "since" | "of" | "during")) {
            return None;
        }
        let year = if month > today.month() {
            today.year() - 1
        } else {
            today.year()
        };
        return match dated {
            Some(year @ 1970..) => whole_month(year, month),
            Some(day @ 1..=31) => around(Date::new(year, month, day as i8).ok()?, 0.days()),
            _ => whole_month(year, month),
        };
    }
    if let Some(day) =
        index(&DAYS, words[0]).filter(|_| matches!(before, Some("last" | "on" | "this")))
    {
        let weekday = Weekday::from_monday_zero_offset(day as i8).ok()?;
        return around(today.nth_weekday(-1, weekday).ok()?, 0.days());
    }
    let count = index(&NUMBERS, words[0])
        .map(|it| it as i64)
        .or_else(|| words[0].parse().ok());
    let count = count.filter(|it| (1..=1000).contains(it));
    match (words[0], next(1), next(2)) {
        ("yesterday", ..) => around(today.yesterday().ok()?, 0.days()),
        ("today", ..) => around(today, 0.days()),
        ("last", "week", _) => Some(past(14.days())?..today),
        ("last", "month", _) => Some(past(60.days())?..today),
        (_, "day" | "days", "ago") => around(past(count?.days())?, 1.days()),
        (_, "week" | "weeks", "ago") => around(past(count?.weeks())?, 4.days()),
        (_, "month" | "months", "ago") => around(past(count?.months())?, 15.days()),
        (_, "year" | "years", "ago") => around(past(count?.years())?, 90.days()),
        _ => None,
    }
}

fn whole_month(year: i16, month: i8) -> Option<Range<Date>> {
    let first = Date::new(year, month, 1).ok()?;
    Some(first..first.last_of_month().tomorrow().ok()?)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn told(question: &str) -> Option<String> {
        let now = date(2026, 11, 16).to_zoned(TimeZone::UTC).unwrap();
        let range = named(question, now.timestamp().as_millisecond())?;
        let [start, end] = [range.start, range.end].map(crate::text::date);
        Some(format!("{start} {end}"))
    }

    #[test]
    fn times_that_a_question_names() {
        for (question, expected) in [
            ("what broke on 2026-03-04?", "2026-03-04 2026-03-05"),
            ("the outage in March", "2026-03-01 2026-04-01"),
            ("the release of December 2024", "2024-12-01 2025-01-01"),
            ("what did we do on May 5th", "2026-05-05 2026-05-06"),
            ("on 24 December", "2025-12-24 2025-12-25"),
            ("the bug from last Tuesday", "2026-11-10 2026-11-11"),
            ("what did I say yesterday", "2026-11-15 2026-11-16"),
            ("three weeks ago", "2026-10-22 2026-10-31"),
            ("a month ago we chose", "2026-10-01 2026-11-01"),
            ("10 days ago", "2026-11-05 2026-11-08"),
            ("last week", "2026-11-02 2026-11-16"),
        ] {
            assert_eq!(told(question).as_deref(), Some(expected), "{question}");
        }
        for question in [
            "it may fail",
            "a day without",
            "march on",
            "",
            "99999999999 days ago",
        ] {
            assert_eq!(told(question), None, "{question}");
        }
    }
}
