//! Settings: embedded defaults, overridden by `config.toml`, overridden by the environment.
//!
//! `default.toml` lists all settings and explains them. For commands, a mistake in `config.toml` is
//! an error that names the nearest known key. Hooks and the worker log the mistake and go on with
//! the settings that are correct.

pub mod policy;
pub mod provider;

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use foreword_core::capture::{self, Limits};
use foreword_core::files::{self, SMALL_MAX};
use foreword_core::model::Millis;
use foreword_core::safety::backup::BackupRetention;
use serde::Deserialize;
use toml::{Table, Value};

use crate::home::Home;
use policy::Policy;

const DEFAULTS: &str = include_str!("default.toml");

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Config {
    pub provider: String,
    pub claude: ClaudeSection,
    pub anthropic: AnthropicSection,
    pub openai: OpenAiSection,
    pub model: ModelSection,
    pub budget: BudgetSection,
    pub worker: WorkerSection,
    pub capture: CaptureSection,
    pub show: ShowSection,
    pub project: ProjectSection,
    pub backup: BackupSection,
    pub notes: NotesSection,
    pub retention: RetentionSection,
    /// Restrictions for single projects, by key.
    #[serde(default)]
    pub projects: BTreeMap<String, Policy>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ClaudeSection {
    pub command: String,
    pub model: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AnthropicSection {
    pub base_url: String,
    pub model: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct OpenAiSection {
    pub base_url: String,
    pub model: String,
}

/// Settings for every provider that has a model, and for the sentence model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ModelSection {
    pub timeout_seconds: u32,
    pub answer_max_tokens: u32,
    pub batch_max_tokens: u32,
    pub conversation: ConversationSetting,
    pub history_max_tokens: u64,
    pub offline_after_minutes: u32,
    pub hub: String,
    pub embed: bool,
}

/// Which questions share a conversation with the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConversationSetting {
    /// `Question` for a local model, else `Session`.
    Auto,
    /// Those about one session.
    Session,
    /// None: each stands alone.
    Question,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BudgetSection {
    pub daily_usd: f64,
    pub session_usd: f64,
    pub daily_tokens: u64,
    pub session_tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WorkerSection {
    pub idle_seconds: u32,
    pub batch_max: u32,
    pub batch_wait_seconds: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CaptureSection {
    pub boring_tools: Vec<String>,
    pub exclude_projects: Vec<String>,
    pub exclude_paths: Vec<String>,
    pub field_max_bytes: usize,
    pub payload_max_bytes: usize,
    pub hash_max_bytes: u64,
}

/// What hooks add to a session without being asked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ShowSection {
    pub index: bool,
    pub prompts: bool,
    pub files: bool,
    pub within_ms: u64,
}

impl Default for ShowSection {
    fn default() -> ShowSection {
        ShowSection {
            index: true,
            prompts: true,
            files: true,
            within_ms: 50,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ProjectSection {
    pub separate_worktrees: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BackupSection {
    pub daily: usize,
    pub weekly: usize,
}

impl BackupSection {
    pub fn kept(&self) -> BackupRetention {
        let BackupSection { daily, weekly } = *self;
        BackupRetention { daily, weekly }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NotesSection {
    pub master_max_tokens: usize,
    pub auto_synthesize_after: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RetentionSection {
    pub events_days: u32,
    pub journal_days: u32,
    pub unopened_days: u32,
}

/// Variables that begin with `FOREWORD_`. Names that are no setting are ignored.
type Environment = Vec<(String, String)>;

/// A mistake in the settings, by where it is.
#[derive(Debug, PartialEq, Eq)]
pub enum Mistake {
    File(String),
    Variable { name: String, error: String },
}

impl Config {
    pub fn load(home: &Home) -> anyhow::Result<Config> {
        Config::from(&file(home)?, &environment())
            .with_context(|| format!("in the settings ({})", home.config().display()))
    }

    /// The first mistake in the file, else in a variable.
    pub fn mistake(home: &Home) -> Option<Mistake> {
        let file = match file(home) {
            Ok(file) => file,
            Err(error) => return Some(Mistake::File(format!("{error:#}"))),
        };
        if let Err(error) = Config::from(&file, &Vec::new()) {
            return Some(Mistake::File(format!("{error:#}")));
        }
        environment().into_iter().find_map(|variable| {
            let name = variable.0.clone();
            let error = Config::from(&file, &vec![variable]).err()?;
            let error = format!("{error:#}");
            Some(Mistake::Variable { name, error })
        })
    }

    /// The settings without those that are wrong, and the first mistake. For hooks and the worker,
    /// which go on in spite of a mistake.
    pub fn tolerant(home: &Home) -> (Config, Option<String>) {
        Config::tolerant_of(&file(home))
    }

    fn tolerant_of(file: &anyhow::Result<String>) -> (Config, Option<String>) {
        match file {
            Ok(file) => Config::tolerant_from(file, &environment()),
            Err(error) => {
                let (config, _) = Config::tolerant_from("", &environment());
                (config.without_a_model(), Some(format!("{error:#}")))
            }
        }
    }

    pub fn tolerant_from(file: &str, environment: &Environment) -> (Config, Option<String>) {
        let mut mistake = None;
        let mut settings = defaults();
        let mut spending_is_clear = true;
        let from_file = single_changes(file).into_iter().map(|change| {
            let about_spending = change.as_ref().map_or(true, may_be_about_spending);
            let change = move |settings: &mut Table| merge(settings, change?, "");
            (about_spending, Box::new(change) as SettingChange)
        });
        let from_environment = environment.iter().cloned().map(|variable| {
            let about_spending = ["FOREWORD_PROVIDER", "FOREWORD_BUDGET_"]
                .iter()
                .any(|start| variable.0.starts_with(start));
            let change =
                move |settings: &mut Table| override_from(settings, &vec![variable], "FOREWORD_");
            (about_spending, Box::new(change) as SettingChange)
        });
        for (about_spending, change) in from_file.chain(from_environment) {
            let mut changed = settings.clone();
            let accepted = change(&mut changed).and_then(|()| Config::checked(changed.clone()));
            match accepted {
                Ok(_) => settings = changed,
                Err(error) => {
                    spending_is_clear &= !about_spending;
                    mistake.get_or_insert_with(|| format!("{error:#}"));
                }
            }
        }
        let config = Config::checked(settings).expect("each change was checked");
        if spending_is_clear {
            (config, mistake)
        } else {
            (config.without_a_model(), mistake)
        }
    }

    /// The same settings with the offline provider: if a setting about spending has a mistake,
    /// nothing is spent.
    fn without_a_model(self) -> Config {
        let provider = provider::Name::Offline.as_str().to_owned();
        Config { provider, ..self }
    }

    pub fn from(file: &str, environment: &Environment) -> anyhow::Result<Config> {
        let mut settings = defaults();
        let file: Table = file.parse().context("config.toml is not valid TOML")?;
        merge(&mut settings, file, "")?;
        override_from(&mut settings, environment, "FOREWORD_")?;
        Config::checked(settings)
    }

    fn checked(settings: Table) -> anyhow::Result<Config> {
        let config: Config = settings
            .try_into()
            .context("a setting has the wrong type")?;
        if config.provider != "auto" && provider::Name::parse(&config.provider).is_none() {
            let known: Vec<_> = provider::names().map(|it| format!("\"{it}\"")).collect();
            bail!(
                "provider = \"{}\" is not known (in config.toml or FOREWORD_PROVIDER); use \"auto\" or one of {}",
                config.provider,
                known.join(", ")
            );
        }
        let BudgetSection {
            daily_usd,
            session_usd,
            ..
        } = config.budget;
        if daily_usd.is_nan() || session_usd.is_nan() {
            bail!("budget.daily_usd and budget.session_usd have to be numbers");
        }
        // With 0, every call would cost something and fail.
        if config.model.timeout_seconds == 0 || config.model.answer_max_tokens == 0 {
            bail!("model.timeout_seconds and model.answer_max_tokens have to be at least 1");
        }
        if config.worker.batch_max == 0 || config.model.batch_max_tokens == 0 {
            bail!("worker.batch_max and model.batch_max_tokens have to be at least 1");
        }
        Ok(config)
    }
}

/// Applies one setting of the user to the table of settings.
type SettingChange = Box<dyn FnOnce(&mut Table) -> anyhow::Result<()>>;

fn defaults() -> Table {
    let mut defaults: Table = DEFAULTS.parse().expect("default.toml is valid");
    let boring = capture::CaptureSettings::default().boring_tools;
    let section = defaults.get_mut("capture").and_then(Value::as_table_mut);
    section
        .expect("default.toml has the section")
        .insert("boring_tools".to_owned(), boring.into());
    defaults
}

/// Splits the file into one table per setting, so that a mistake in one does not affect the others.
fn single_changes(file: &str) -> Vec<anyhow::Result<Table>> {
    let table: Table = match file
        .parse::<Table>()
        .context("config.toml is not valid TOML")
    {
        Ok(table) => table,
        Err(error) => return vec![Err(error)],
    };
    let one = |key: &str, value: Value| Table::from_iter([(key.to_owned(), value)]);
    let mut changes = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(section) if !section.is_empty() => changes.extend(
                section
                    .into_iter()
                    .map(|(name, value)| Ok(one(&key, Value::Table(one(&name, value))))),
            ),
            value => changes.push(Ok(one(&key, value))),
        }
    }
    changes
}

/// Whether a change may be about spending: it is unless it stands in a known section other than
/// `[budget]`.
fn may_be_about_spending(change: &Table) -> bool {
    let defaults = defaults();
    change.keys().any(|key| {
        let is_section = defaults.get(key).is_some_and(Value::is_table);
        key == "budget" || !is_section
    })
}

fn file(home: &Home) -> anyhow::Result<String> {
    let read = files::if_there(files::read_text(&home.config(), SMALL_MAX));
    let read = read.with_context(|| format!("could not read {}", home.config().display()))?;
    Ok(read.unwrap_or_default())
}

fn environment() -> Environment {
    std::env::vars()
        .filter(|(name, _)| name.starts_with("FOREWORD_"))
        .collect()
}

/// The settings that hooks need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookSettings {
    pub capture: capture::CaptureSettings,
    pub show: ShowSection,
    pub separate_worktrees: bool,
    /// The days after which an observation leaves the index if no agent opened it; 0 for never.
    pub unopened_days: u32,
    /// The user's restrictions for single projects, by key.
    pub projects: BTreeMap<String, Policy>,
}

impl HookSettings {
    /// The time in which an older observation must have been opened to be in the index.
    pub fn unopened_kept(&self) -> Option<Millis> {
        let days = Millis::from(self.unopened_days);
        (days > 0).then_some(days * 24 * 3_600_000)
    }
}

/// The settings for a hook, and the first mistake in them. Usually there is no `config.toml`, and
/// nothing is read. The settings are none if there may be exclusions that cannot be understood: then
/// it is safer to store nothing.
pub fn hook_settings(home: &Home) -> (Option<HookSettings>, Option<String>) {
    let is_for_hooks = |name: &[u8]| {
        [
            &b"FOREWORD_CAPTURE_"[..],
            b"FOREWORD_SHOW_",
            b"FOREWORD_PROJECT_",
            b"FOREWORD_RETENTION_",
        ]
        .iter()
        .any(|section| name.starts_with(section))
    };
    let changed = home.config().exists()
        || std::env::vars_os().any(|(name, _)| is_for_hooks(name.as_encoded_bytes()));
    if !changed {
        return (Some(HookSettings::default()), None);
    }
    let file = file(home);
    let (config, mistake) = Config::tolerant_of(&file);
    let readable = file.map(|text| exclusions_hold(&text));
    let settings = HookSettings {
        capture: config.capture.into(),
        show: config.show,
        separate_worktrees: config.project.separate_worktrees,
        unopened_days: config.retention.unopened_days,
        projects: config.projects,
    };
    (readable.unwrap_or(false).then_some(settings), mistake)
}

/// Whether every key in the settings that looks like an exclusion is a valid one, and every
/// restriction of a project.
fn exclusions_hold(text: &str) -> bool {
    // Saves parsing the file in most hooks.
    if !text.contains("exclu") && !text.contains(PROJECTS) {
        return true;
    }
    let Ok(table) = text.parse::<Table>() else {
        return false;
    };
    let of_projects = table.get(PROJECTS).cloned();
    if of_projects.is_some_and(|it| add_projects(&mut Table::new(), it).is_err()) {
        return false;
    }
    let sections = table.iter().filter(|(name, _)| *name != PROJECTS);
    let sections = sections.flat_map(|(name, value)| {
        let keys = value.as_table().into_iter().flatten();
        let keys = keys.map(move |(key, value)| (name.as_str(), key.as_str(), value));
        keys.chain([("", name.as_str(), value)])
    });
    sections
        .filter(|(_, key, _)| key.contains("exclu"))
        .all(|(section, key, value)| {
            let is_known =
                section == "capture" && matches!(key, "exclude_projects" | "exclude_paths");
            let patterns = value.as_array();
            is_known && patterns.is_some_and(|it| it.iter().all(Value::is_str))
        })
}

impl From<CaptureSection> for capture::CaptureSettings {
    fn from(capture: CaptureSection) -> capture::CaptureSettings {
        capture::CaptureSettings {
            boring_tools: capture.boring_tools,
            exclude_projects: capture
                .exclude_projects
                .into_iter()
                .map(below_home)
                .collect(),
            exclude_paths: capture.exclude_paths.into_iter().map(below_home).collect(),
            keeps_remember: false,
            limits: Limits {
                field_max: capture.field_max_bytes.max(256),
                payload_max: capture.payload_max_bytes.max(4096),
                hash_max: capture.hash_max_bytes,
            },
        }
    }
}

/// Replaces `~/` at the start of a pattern by the home directory.
fn below_home(pattern: String) -> String {
    match (pattern.strip_prefix("~/"), std::env::var("HOME")) {
        (Some(rest), Ok(home)) => format!("{home}/{rest}"),
        _ => pattern,
    }
}

fn merge(settings: &mut Table, changes: Table, within: &str) -> anyhow::Result<()> {
    for (key, change) in changes {
        // The keys of this section are those of projects, which no default lists.
        if within.is_empty() && key == PROJECTS {
            add_projects(settings, change)?;
            continue;
        }
        let Some(setting) = settings.get_mut(&key) else {
            let known = nearest(&key, settings.keys());
            bail!("there is no setting {within}{key}; did you mean {within}{known}?");
        };
        match (setting, change) {
            (Value::Table(inner), Value::Table(changes)) => {
                merge(inner, changes, &format!("{key}."))?;
            }
            (Value::Table(_), _) => bail!("{within}{key} is a section: write [{within}{key}]"),
            (setting, change) if setting.type_str() == change.type_str() => *setting = change,
            // An integer is accepted for a float: `daily_usd = 2`.
            (setting @ Value::Float(_), Value::Integer(whole)) => {
                *setting = Value::Float(whole as f64);
            }
            (setting, change) => bail!(
                "{within}{key} is of type {}, but should be {}",
                change.type_str(),
                setting.type_str()
            ),
        }
    }
    Ok(())
}

/// The section with one table for each project that the user restricts.
const PROJECTS: &str = "projects";

fn add_projects(settings: &mut Table, projects: Value) -> anyhow::Result<()> {
    let Value::Table(projects) = projects else {
        bail!("{PROJECTS} is a section: write [{PROJECTS}.\"KEY\"]");
    };
    for (key, policy) in &projects {
        let checked: Result<Policy, _> = policy.clone().try_into();
        checked.with_context(|| format!("[{PROJECTS}.\"{key}\"] has a mistake"))?;
    }
    let section = settings
        .entry(PROJECTS)
        .or_insert_with(|| Table::new().into());
    if let Value::Table(section) = section {
        section.extend(projects);
    }
    Ok(())
}

/// Replaces settings by the variables named after them: `FOREWORD_SECTION_KEY`.
fn override_from(
    settings: &mut Table,
    environment: &Environment,
    prefix: &str,
) -> anyhow::Result<()> {
    for (key, setting) in settings {
        let name = format!("{prefix}{}", key.to_uppercase());
        if let Value::Table(inner) = setting {
            override_from(inner, environment, &format!("{name}_"))?;
            continue;
        }
        let Some((_, text)) = environment.iter().find(|(it, _)| *it == name) else {
            continue;
        };
        let not_a_number = || format!("{name} is not a number");
        *setting = match setting {
            Value::Integer(_) => text
                .parse()
                .map(Value::Integer)
                .with_context(not_a_number)?,
            Value::Float(_) => text.parse().map(Value::Float).with_context(not_a_number)?,
            Value::Boolean(_) => text
                .parse()
                .map(Value::Boolean)
                .with_context(|| format!("{name} is neither true nor false"))?,
            Value::Array(_) => {
                let words = text
                    .split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty());
                Value::Array(words.map(|word| Value::String(word.to_owned())).collect())
            }
            _ => Value::String(text.clone()),
        };
    }
    Ok(())
}

/// The known key that is the fewest changes away.
fn nearest<'a>(key: &str, known: impl Iterator<Item = &'a String>) -> &'a str {
    known
        .min_by_key(|candidate| strsim::levenshtein(key, candidate))
        .map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(file: &str) -> String {
        format!("{:#}", Config::from(file, &Vec::new()).unwrap_err())
    }

    #[test]
    fn the_hooks_defaults_are_those_of_default_toml() {
        let config = Config::from("", &Vec::new()).unwrap();
        assert_eq!(
            capture::CaptureSettings::from(config.capture),
            capture::CaptureSettings::default()
        );
    }

    #[test]
    fn the_file_goes_over_the_defaults_and_the_environment_over_both() {
        let file = "[worker]\nidle_seconds = 5\nbatch_max = 7\n";
        let environment = vec![
            ("FOREWORD_WORKER_IDLE_SECONDS".into(), "9".into()),
            ("FOREWORD_CAPTURE_BORING_TOOLS".into(), "Read, Glob".into()),
            ("FOREWORD_PROVIDER".into(), "offline".into()),
            ("FOREWORD_HOME".into(), "/x".into()),
        ];
        let config = Config::from(file, &environment).unwrap();
        assert_eq!(
            (config.worker.idle_seconds, config.worker.batch_max),
            (9, 7)
        );
        assert_eq!(config.capture.boring_tools, ["Read", "Glob"]);
        assert_eq!(config.provider, "offline");
    }

    #[test]
    fn a_mistake_does_not_cost_the_settings_beside_it() {
        let file = "[worker]\nidle_secs = 5\nbatch_max = 7\n[capture]\nexclude_projects = [\"x\"]\nfield_max_bytes = -1\n";
        let environment = vec![
            ("FOREWORD_PROVIDER".into(), "nobody".into()),
            ("FOREWORD_WORKER_IDLE_SECONDS".into(), "9".into()),
        ];
        let (config, mistake) = Config::tolerant_from(file, &environment);
        assert_eq!(config.capture.exclude_projects, ["x"]);
        assert_eq!(
            (config.worker.batch_max, config.worker.idle_seconds),
            (7, 9)
        );
        assert_eq!(config.capture.field_max_bytes, 16384);
        assert!(mistake.is_some());
        let (config, mistake) = Config::tolerant_from("[worker", &Vec::new());
        let defaults = Config::from("", &Vec::new()).unwrap();
        assert_eq!(config, defaults.without_a_model());
        assert!(mistake.unwrap().contains("not valid TOML"));
    }

    #[test]
    fn a_mistake_about_spending_spends_nothing() {
        let provider = |file: &str| Config::tolerant_from(file, &Vec::new()).0.provider;
        for file in [
            "provider = 'ofline'",
            "provide = 'offline'",
            "[budget]\ndaily_usd = '0'",
            "[budget]\ndaily_usd = nan",
            "[buget]\ndaily_usd = 0",
            "provider = 'anthropic'\n[budget]\ndaily_usd = 0,5",
        ] {
            assert_eq!(provider(file), "offline", "{file}");
        }
        assert_eq!(provider("[worker]\nidle_secs = 5"), "auto");
        assert_eq!(provider("[model]\ntimeout_seconds = 0"), "auto");
        let budget = vec![("FOREWORD_BUDGET_DAILY_USD".into(), "none".into())];
        assert_eq!(Config::tolerant_from("", &budget).0.provider, "offline");
    }

    #[test]
    fn a_mistake_is_named_with_what_was_meant() {
        assert_eq!(
            error("[worker]\nidle_second = 5\n"),
            "there is no setting worker.idle_second; did you mean worker.idle_seconds?"
        );
        assert_eq!(
            error("provide = 'x'"),
            "there is no setting provide; did you mean provider?"
        );
        assert!(error("[worker]\nidle_seconds = 'x'").contains("should be integer"));
        assert!(error("worker = 1").contains("is a section"));
        assert!(error("provider = 'opanai'").contains("is not known"));
        assert!(error("= 1").contains("not valid TOML"));
    }
}
