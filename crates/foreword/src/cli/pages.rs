//! `foreword completions SHELL` and `foreword man`, generated from the command line's definition.

use std::io::Write as _;

use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use super::Cli;
use crate::output::SafeText;

#[derive(clap::Args)]
pub struct CompletionsArgs {
    // Only shells that are tested.
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    shell: String,
}

pub fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    let shell = args.shell.parse::<Shell>().map_err(anyhow::Error::msg)?;
    let mut page = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "foreword", &mut page);
    SafeText::of_program(String::from_utf8(page)?).print();
    Ok(())
}

pub fn man() -> anyhow::Result<()> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut page = Vec::new();
    let man = Man::new(command.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_options_section(&mut page)?;
    for command in command.get_subcommands() {
        chapter(command, &mut page)?;
    }
    man.render_version_section(&mut page)?;
    SafeText::of_program(String::from_utf8(page)?).print();
    Ok(())
}

/// Adds a command and its subcommands to the page, since one page is easier to install than many.
fn chapter(command: &clap::Command, page: &mut Vec<u8>) -> std::io::Result<()> {
    if command.is_hide_set() {
        return Ok(());
    }
    let man = Man::new(command.clone());
    let mut sections = Vec::new();
    man.render_description_section(&mut sections)?;
    man.render_synopsis_section(&mut sections)?;
    man.render_options_section(&mut sections)?;
    let sections = String::from_utf8_lossy(&sections).replace("\n.SH ", "\n.SS ");
    let name = command.get_bin_name().unwrap_or(command.get_name());
    write!(page, ".SH \"{}\"\n{sections}", name.to_uppercase())?;
    for below in command.get_subcommands() {
        chapter(below, page)?;
    }
    Ok(())
}
