//! Finds what was remembered, by its words.
//!
//! The first form: every word of the query counts, a row with any of them is a
//! hit, and the best come first. No query is an error: whatever the user typed is
//! quoted before SQLite's query language sees it.

use rusqlite::named_params;

use crate::model::{Kind, Millis, ObservationType};
use crate::store::Store;
use crate::text;

#[derive(Debug, Clone, PartialEq)]
pub struct Query<'a> {
    pub words: &'a str,
    /// The project's key; none searches all of them.
    pub project: Option<&'a str>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub id: i64,
    pub kind: Kind,
    pub observation_type: Option<ObservationType>,
    pub title: String,
    pub project: Option<String>,
    pub session: String,
    pub at: Millis,
    /// Higher is better.
    pub score: f64,
}

pub fn search(store: &Store, query: &Query<'_>) -> rusqlite::Result<Vec<Hit>> {
    let Some(expression) = expression(query.words) else {
        return Ok(Vec::new());
    };
    // A prompt says what was asked, an observation what was found: of two equal
    // matches the second is wanted more often.
    let mut statement = store.connection.prepare_cached(
        "select i.id, i.kind, o.type,
                coalesce(o.title, m.request, p.text) as title,
                j.name as project, s.host_session_id as session,
                coalesce(o.at, m.at, p.at) as at,
                -bm25(texts, 4.0, 1.0, 2.0) * case i.kind when 'observation' then 1.2 else 1.0 end as score
         from texts
         join items i on i.id = texts.rowid
         left join observations o on o.id = i.id
         left join summaries m on m.id = i.id
         left join prompts p on p.id = i.id
         join sessions s on s.id = coalesce(o.session_id, m.session_id, p.session_id)
         left join projects j on j.id = s.project_id
         where texts match :expression
           and (
               :project is null
               or s.project_id = (select project_id from project_keys where key = :project)
           )
         order by score desc, i.id desc
         limit :limit",
    )?;
    let rows = statement.query_map(
        named_params! {":expression": expression, ":project": query.project, ":limit": query.limit},
        |row| {
            let title: String = row.get("title")?;
            let kind = row.get("kind")?;
            Ok(Hit {
                id: row.get("id")?,
                kind,
                observation_type: row.get("type")?,
                title: if kind == Kind::Observation {
                    title
                } else {
                    text::title(&title)
                },
                project: row.get("project")?,
                session: row.get("session")?,
                at: row.get("at")?,
                score: row.get("score")?,
            })
        },
    )?;
    rows.collect()
}

/// `"one" OR "two"`; none if there is no word in it.
fn expression(words: &str) -> Option<String> {
    let terms: Vec<String> = words
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| format!("\"{word}\""))
        .collect();
    (!terms.is_empty()).then(|| terms.join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::expression;

    #[test]
    fn whatever_was_typed_becomes_plain_words() {
        assert_eq!(
            expression("rm -rf \"x\" AND"),
            Some(r#""rm" OR "rf" OR "x" OR "AND""#.into())
        );
        assert_eq!(expression("  -*\"  "), None);
    }
}
