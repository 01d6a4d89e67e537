//! Which projects, sessions and times a command looks at: the same flags wherever one looks back.

use anyhow::bail;
use foreword_core::model::Millis;
use foreword_core::search::Filter;
use foreword_core::store::Store;

#[derive(clap::Args)]
pub struct Scope {
    /// A project by name or key instead of the current one; may be given several times
    #[arg(long, value_name = "PROJECT")]
    project: Vec<String>,
    /// Every project, not only the current one
    #[arg(long, conflicts_with = "project")]
    all_projects: bool,
    /// A session, by its id or how that begins
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// What was done on a branch
    #[arg(long)]
    branch: Option<String>,
    /// Not before: 30d, 12h, today or 2026-11-01
    #[arg(long, value_name = "WHEN", value_parser = when)]
    since: Option<When>,
    /// Not after: 30d, 12h, today or 2026-11-01
    #[arg(long, value_name = "WHEN", value_parser = when)]
    until: Option<When>,
}

impl Scope {
    /// None where there is no project to look at: the current directory belongs to none.
    pub fn filter(&self, now: Millis) -> Option<Filter> {
        let projects = if self.all_projects {
            None
        } else if self.project.is_empty() {
            Some(vec![super::current_project()?])
        } else {
            Some(self.project.clone())
        };
        Some(Filter {
            projects,
            session: self.session.clone(),
            branch: self.branch.clone(),
            since: self.since.map(|when| when.start(now)),
            until: self.until.map(|when| when.end(now)),
            ..Filter::default()
        })
    }

    /// Projects that nobody knows are a slip of the hand.
    pub fn check(&self, store: Option<&Store>) -> anyhow::Result<()> {
        let unknown = store.map(|store| store.unknown_project(&self.project));
        match unknown.transpose()?.flatten() {
            Some(name) => bail!("no project is called '{name}'; `foreword projects` lists them"),
            None => Ok(()),
        }
    }

    pub fn is_current_project(&self) -> bool {
        !self.all_projects && self.project.is_empty()
    }
}

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
    let day = || {
        let date: jiff::civil::Date = text.parse().ok()?;
        let start = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(When::Day(start.timestamp().as_millisecond()))
    };
    // As `--format json` prints it.
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
    .ok_or_else(|| format!("'{text}' is no time; write 30d, 12h, today or 2026-11-01"))
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
