//! `flitcast completions` and `flitcast man`: shell completions and man pages, generated from the
//! definition of the command line.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::render::exit::EXIT_STATUS;
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::phrases::at;
use flitcast_cluster::text::whole_file::write_whole;

const SHELLS: &str = "\
Examples:
  flitcast completions bash > ~/.local/share/bash-completion/completions/flitcast
  flitcast completions zsh > ~/.zfunc/_flitcast    # with ~/.zfunc in fpath
  flitcast completions fish > ~/.config/fish/completions/flitcast.fish";

const PAGES: &str = "\
Examples:
  flitcast man ~/.local/share/man/man1 && man flitcast-scatter";

/// Arguments of `flitcast completions`.
#[derive(Debug, Args)]
#[command(after_help = SHELLS)]
pub struct CompletionsArgs {
    /// Name of the shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Arguments of `flitcast man`.
#[derive(Debug, Args)]
#[command(after_help = PAGES)]
pub struct ManArgs {
    /// Folder, which is created if it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl CompletionsArgs {
    /// Prints the completion script for `command`.
    pub fn run(self, mut command: Command, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
        // `generate` would panic if writing failed, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "flitcast", &mut script);
        Ok(out.write_all(&script))
    }
}

impl ManArgs {
    /// Writes a page for each subcommand of `command`, and prints their number.
    pub fn run(self, command: Command, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
        let folder = self.folder.display();
        let pages = self.write_pages(command)?;
        Ok(writeln!(out, "{pages} pages in {folder}"))
    }

    fn write_pages(&self, command: Command) -> anyhow::Result<usize> {
        std::fs::create_dir_all(&self.folder).map_err(at(&self.folder))?;
        let mut command = command.disable_help_subcommand(true);
        command.build();
        let mut pages = Vec::new();
        collect(command, &mut pages);
        for (name, page) in &pages {
            let path = self.folder.join(name);
            write_whole(&path, |out| out.write_all(page)).map_err(at(&path))?;
        }
        Ok(pages.len())
    }
}

fn collect(command: Command, pages: &mut Vec<(String, Vec<u8>)>) {
    for below in command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
    {
        collect(below.clone(), pages);
    }
    let name = command.get_display_name().unwrap_or("flitcast").to_owned();
    pages.push((format!("{name}.1"), page(command, &name)));
}

fn page(command: Command, name: &str) -> Vec<u8> {
    let help = command.get_after_long_help().or(command.get_after_help());
    let help = help.map(ToString::to_string);
    let version = env!("CARGO_PKG_VERSION");
    // The text after the help becomes separate sections.
    let man = Man::new(
        command
            .version(version)
            .after_help(None::<&str>)
            .after_long_help(None::<&str>),
    )
    .title(name)
    .source(format!("flitcast {version}"))
    .manual("Flitcast");
    let mut more = Roff::new();
    more.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in EXIT_STATUS {
        more.control("TP", []);
        more.text([bold(*code)]);
        more.text([roman(*meaning)]);
    }
    let examples = help.as_deref().and_then(|help| help.split("\n\n").next());
    if let Some(examples) = examples.and_then(|text| text.strip_prefix("Examples:\n")) {
        more.control("SH", ["EXAMPLES"]);
        more.control("nf", []);
        for line in examples.lines() {
            more.text([roman(line.trim_start())]);
        }
        more.control("fi", []);
    }
    let mut page = Vec::new();
    // Writing to a Vec does not fail.
    let _ = man.render(&mut page);
    let _ = more.to_writer(&mut page);
    page
}
