//! The filter of a search, as SQL.
//!
//! Each condition that is set becomes one clause. A clause that is absent costs nothing, and
//! SQLite can begin with the one that leaves the fewest rows.

use rusqlite::ToSql;
use serde::{Deserialize, Serialize};

use crate::model::{Kind, Millis, ObservationType, Origin};

/// SQL: session `s` belongs to one of `:projects`, which are names or keys.
pub(super) const OF_PROJECTS: &str = "s.project_id in (
     select id from projects where name in (select value from json_each(:projects))
     union
     select project_id from project_keys where key in (select value from json_each(:projects))
 )";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Names or keys, any of them; none stands for all projects.
    pub projects: Option<Vec<String>>,
    pub kind: Option<Kind>,
    pub observation_type: Option<ObservationType>,
    pub concept: Option<String>,
    /// A file, by its whole path or the end of it, or a folder.
    pub file: Option<String>,
    /// The number of a prompt in its session.
    pub prompt: Option<u32>,
    /// The host's id, or its beginning.
    pub session: Option<String>,
    pub branch: Option<String>,
    pub origin: Option<Origin>,
    pub since: Option<Millis>,
    /// Inclusive.
    pub until: Option<Millis>,
}

impl Filter {
    /// The same filter with no condition but the projects.
    pub fn only_projects(&self) -> Filter {
        Filter {
            projects: self.projects.clone(),
            ..Filter::default()
        }
    }

    /// Whether hits may come from more than one project.
    pub fn spans_projects(&self) -> bool {
        self.projects.as_ref().is_none_or(|it| it.len() > 1)
    }

    pub fn is_only_projects(&self) -> bool {
        *self == self.only_projects()
    }

    /// Whether items of one kind or type are asked for, rather than turns.
    pub fn is_about_items(&self) -> bool {
        self.kind.is_some() || self.observation_type.is_some()
    }

    /// Whether every condition applies to a whole session, not to single items.
    pub(super) fn is_about_sessions(&self) -> bool {
        let about_sessions = Filter {
            session: self.session.clone(),
            branch: self.branch.clone(),
            since: self.since,
            until: self.until,
            ..self.only_projects()
        };
        *self == about_sessions
    }

    pub(super) fn clauses(&self) -> Clauses {
        let mut clauses = Clauses::default();
        if let Some(projects) = &self.projects {
            let projects = serde_json::to_string(projects).unwrap_or_default();
            clauses.add(OF_PROJECTS, ":projects", projects);
        }
        clauses.add_some("t.kind = :kind", ":kind", self.kind);
        clauses.add_some("t.type = :type", ":type", self.observation_type);
        clauses.add_some(
            "t.id in (
                 select observation_id
                 from observation_concepts
                 where concept in (:concept, lower(:concept))
             )",
            ":concept",
            self.concept.clone(),
        );
        // Files in a folder sort between `folder/` and `folder0`, the next character. The end of
        // a path is looked up by the file's name. Only if there is no such file, all paths are
        // searched for a folder of this name.
        clauses.add_some(
            "t.id in (
                 with named (id) as (
                     select observation_id from observation_files where path = :file
                     union
                     select observation_id
                     from observation_files
                     where replace(path, rtrim(path, replace(path, '/', '')), '')
                               = replace(:file, rtrim(:file, replace(:file, '/', '')), '')
                       and substr(path, -length(:file) - 1) = '/' || :file
                 )
                 select id from named
                 union
                 select observation_id
                 from observation_files
                 where path > :file || '/' and path < :file || '0'
                 union
                 select observation_id
                 from observation_files
                 where not exists (select 1 from named) and instr(path, '/' || :file || '/') > 0
             )",
            ":file",
            self.file.as_ref().map(|file| {
                let file = file.strip_prefix("./").unwrap_or(file);
                file.trim_end_matches('/').to_owned()
            }),
        );
        clauses.add_some("q.number = :prompt", ":prompt", self.prompt);
        clauses.add_some(
            "substr(s.host_session_id, 1, length(:session)) = :session",
            ":session",
            self.session.clone(),
        );
        clauses.add_some(
            "coalesce(t.branch, s.branch) = :branch",
            ":branch",
            self.branch.clone(),
        );
        clauses.add_some("t.origin = :origin", ":origin", self.origin);
        clauses.add_some("t.at >= :since", ":since", self.since);
        clauses.add_some("t.at <= :until", ":until", self.until);
        clauses
    }
}

/// Conditions in SQL, and the values of their parameters.
#[derive(Default)]
pub(super) struct Clauses {
    sql: Vec<&'static str>,
    values: Vec<(&'static str, Box<dyn ToSql>)>,
}

impl Clauses {
    pub fn add(&mut self, sql: &'static str, name: &'static str, value: impl ToSql + 'static) {
        self.sql.push(sql);
        self.values.push((name, Box::new(value)));
    }

    pub fn add_some(
        &mut self,
        sql: &'static str,
        name: &'static str,
        value: Option<impl ToSql + 'static>,
    ) {
        if let Some(value) = value {
            self.add(sql, name, value);
        }
    }

    pub fn sql(&self) -> String {
        if self.sql.is_empty() {
            return "true".to_owned();
        }
        self.sql.join("\n  and ")
    }

    pub fn values(&self) -> Vec<(&str, &dyn ToSql)> {
        let values = self.values.iter();
        values
            .map(|(name, value)| (*name, value.as_ref()))
            .collect()
    }
}
