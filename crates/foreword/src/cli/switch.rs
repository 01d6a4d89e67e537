//! `foreword off` and `foreword on`

use anyhow::{Context as _, bail};
use foreword_core::text::one_line;

use crate::home;
use crate::host;
use crate::service::{self, named};
use crate::switch::{self, SwitchScope, Switches, Turned};

/// The scope of the switch; by default the current project.
#[derive(clap::Args)]
#[group(multiple = false)]
pub struct Args {
    /// In every project
    #[arg(long)]
    everywhere: bool,
    /// For one session: its id or the beginning of it, else the one that this command runs in
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "ID")]
    session: Option<String>,
}

impl Args {
    fn scope(&self) -> anyhow::Result<SwitchScope> {
        if self.everywhere {
            return Ok(SwitchScope::Everywhere);
        }
        if let Some(id) = &self.session {
            let id = match id.as_str() {
                "" => host::session_here()
                    .map(|(_, session)| session)
                    .context("which session? Write --session ID")?,
                id => named::whole_id(id)?,
            };
            if id.contains(char::is_whitespace) {
                bail!("'{}' is not a session id", one_line(&id));
            }
            return Ok(SwitchScope::Session(id));
        }
        service::current_project()
            .map(SwitchScope::Project)
            .context("not a project directory; write --everywhere or --session ID")
    }
}

pub fn off(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_write()?;
    let scope = args.scope()?;
    let mut switches = Switches::read(&home);
    if switches.set_off(scope.clone()) {
        switch::record(&home, &scope, Turned::Off, home::now())
            .context("could not note the time")?;
    }
    switches
        .write(&home)
        .context("could not write the switch")?;
    println!(
        "off {}: nothing is written and nothing injected there",
        words(&scope)
    );
    Ok(())
}

pub fn on(args: &Args) -> anyhow::Result<()> {
    let home = service::home_to_write()?;
    let scope = args.scope()?;
    let mut switches = Switches::read(&home);
    let was_off = switches.set_on(&scope);
    if was_off {
        switch::record(&home, &scope, Turned::On, home::now())
            .context("could not note the time")?;
    }
    switches
        .write(&home)
        .context("could not write the switch")?;
    let state = if was_off { "on again" } else { "on already" };
    println!("{state} {}", words(&scope));
    if switches.everywhere() {
        println!("but Foreword is off everywhere; `foreword on --everywhere` switches it on");
    }
    Ok(())
}

fn words(scope: &SwitchScope) -> String {
    match scope {
        SwitchScope::Everywhere => "everywhere".to_owned(),
        SwitchScope::Project(key) => format!("in the project {}", one_line(key)),
        SwitchScope::Session(id) => format!("for session {}", one_line(id)),
    }
}
