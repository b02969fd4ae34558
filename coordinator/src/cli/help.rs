//! The help: the list of commands by task, the short help of each option, and lines of 80 columns. (The
//! feature of clap that breaks lines links one more crate.)

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, Error};

const COLUMNS: usize = 80;
/// Maximum length of a help text that is short as a whole.
const SHORT: usize = 50;
/// Columns in which the text of a line may begin.
const INDENTATION: usize = 40;

/// The commands that people type, by task.
const TASKS: [(&str, &str); 5] = [
    ("Move messages", "scatter gather broadcast gossip exchange"),
    ("Compute", "map"),
    ("Recover", "resume"),
    ("Keep a cluster", "check up status watch down ca"),
    ("Predict and measure", "plan compare bench calibrate tree"),
];

/// The options that only the long help has.
const EXPERT: &str = "blocks control cover credentials deal encrypted exclude_hosts flit_size group insecure \
    keep_work link_flit metrics order packets pacing ports profile raw root search shared spanning speculate sync \
    time_limit timeouts trace warm_up work";

/// Arranges the help of all commands, if the command line may request it: that takes longer than the
/// start of a PE should.
pub fn with_help_if_requested(mut command: Command, words: &[OsString]) -> Command {
    let requests_help = |word: &OsString| {
        let word = word.to_string_lossy();
        // -vh is -v and -h.
        let has_flag = word
            .strip_prefix('-')
            .is_some_and(|it| !it.starts_with('-') && it.contains('h'));
        has_flag || word == "--help" || word == "help"
    };
    if words.len() > 1 && !words.iter().any(requests_help) {
        return command;
    }
    command = with_tasks(command);
    command.build();
    with_short_help(command)
}

fn with_tasks(command: Command) -> Command {
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (task, names) in TASKS {
        template.push_str(&format!("\n{task}:\n"));
        for name in names.split(' ') {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or(String::new(), ToString::to_string);
            template.push_str(&format!("  {name:<9}  {about}\n"));
        }
    }
    command.help_template(template + "\nOptions:\n{options}{after-help}")
}

/// Makes the short help of a command and of those below it fit on a screen.
fn with_short_help(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.get_help().map(ToString::to_string) {
        Some(help) if arg.get_long_help().is_none() => arranged(arg)
            .help(first_clause(&help).to_owned())
            .long_help(help),
        _ => arranged(arg),
    });
    command.mut_subcommands(with_short_help)
}

/// Moves the options of experts behind the others.
fn arranged(arg: Arg) -> Arg {
    if !EXPERT.split(' ').any(|id| arg.get_id() == id) {
        return arg;
    }
    let arg = arg.hide_short_help(true);
    match arg.get_help_heading() {
        Some(_) => arg,
        None => arg.help_heading("Expert"),
    }
}

/// Returns the beginning of a long text that makes sense alone.
fn first_clause(help: &str) -> &str {
    let ends = [". ", ": ", "; ", " [default"];
    let end = ends.iter().filter_map(|end| help.find(end)).min();
    match end {
        Some(end) if help.len() > SHORT => &help[..end],
        _ => help,
    }
}

/// Returns the help with its lines broken at spaces, for a terminal of that many columns; what follows
/// begins below the text of its line. Values that do not fit into the line of an option are those of the
/// long help.
pub fn wrapped(help: &str, columns: Option<usize>) -> String {
    let columns = columns.unwrap_or(COLUMNS).min(COLUMNS);
    let mut out = String::new();
    for line in help.lines() {
        let values = line.find(" [possible values: ");
        let is_long = line.chars().count() > columns;
        let line = &line[..values.filter(|_| is_long).unwrap_or(line.len())];
        let begin = line.chars().take(INDENTATION).collect::<String>();
        let text = begin.rfind("  ").map_or(0, |place| place + 2);
        // On a narrow terminal, a word may not fit there.
        let text = text.min(columns / 2);
        let mut rest = line.to_owned();
        while rest.chars().count() > columns {
            let most = rest
                .char_indices()
                .nth(columns + 1)
                .map_or(rest.len(), |(at, _)| at);
            let before = rest[..most].rfind(' ').filter(|space| *space > text);
            // A word that is longer is not broken.
            let after = || Some(most + rest[most..].find(' ')?);
            let Some(space) = before.or_else(after) else {
                break;
            };
            out.push_str(rest[..space].trim_end());
            out.push('\n');
            rest = " ".repeat(text) + &rest[space + 1..];
        }
        out.push_str(&rest);
        out.push('\n');
    }
    out
}

/// Keeps of the commands that an error lists or suggests those that people type, and of suggestions the
/// nearest one.
pub fn with_nearest(mut error: Error, command: &Command) -> Error {
    let is_typed = |name: &String| {
        let mut typed = TASKS.iter().flat_map(|(_, all)| all.split(' '));
        let found = command.find_subcommand(name);
        found.is_none_or(|it| typed.any(|one| one == it.get_name()))
    };
    if let Some(ContextValue::Strings(mut all)) = error.remove(ContextKind::ValidSubcommand) {
        all.retain(|name| is_typed(name));
        error.insert(ContextKind::ValidSubcommand, ContextValue::Strings(all));
    }
    let Some(ContextValue::Strings(similar)) = error.remove(ContextKind::SuggestedSubcommand)
    else {
        return error;
    };
    // The nearest one is the last.
    if let Some(nearest) = similar.into_iter().rfind(is_typed) {
        let nearest = ContextValue::Strings(vec![nearest]);
        error.insert(ContextKind::SuggestedSubcommand, nearest);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Cli;
    use clap::CommandFactory as _;

    fn check(mut command: Command) {
        let name = command.get_display_name().unwrap_or_default().to_owned();
        let [short, long] = [command.render_help(), command.render_long_help()];
        let [short, long] = [short.to_string(), long.to_string()];
        let lines = wrapped(&short, None).lines().count();
        assert!(lines <= 40, "{name}: {lines} lines\n{short}");
        for (columns, text) in [40, 60, COLUMNS]
            .into_iter()
            .flat_map(|it| [(it, &short), (it, &long)])
        {
            for line in wrapped(text, Some(columns)).lines() {
                let is_one = line.split_whitespace().count() == 1;
                assert!(
                    line.chars().count() <= columns || is_one,
                    "{name}, {columns}: {line}"
                );
            }
        }
        command.get_subcommands().cloned().for_each(check);
    }

    #[test]
    fn the_short_help_of_each_command_fits_on_a_screen() {
        let help = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            with_help_if_requested(Cli::command(), &words)
        };
        check(help(&["flitcast"]));
        let short = |words: &[&str]| help(words).render_help().to_string();
        assert_eq!(short(&["flitcast", "-vh"]), short(&["flitcast", "-h"]));
    }

    #[test]
    fn every_command_of_the_list_exists_and_similar_ones_are_suggested() {
        let command = Cli::command();
        for name in TASKS.iter().flat_map(|(_, names)| names.split(' ')) {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
        let tip = |word: &str| {
            let parsed = command.clone().try_get_matches_from(["flitcast", word]);
            with_nearest(parsed.unwrap_err(), &command).to_string()
        };
        assert!(tip("scater").contains("similar subcommand exists: 'scatter'\n"));
        assert!(!tip("stag").contains("stage"));
        let listed = tip("-q");
        assert!(listed.contains("scatter, gather") && !listed.contains("self-hash"));
    }

    #[test]
    fn lines_continue_below_their_text() {
        let line = format!("  - name:  {}", "word ".repeat(20));
        let broken = wrapped(&line, None);
        let second = broken.lines().nth(1).expect("a second line");
        assert!(second.starts_with("           word"), "{broken}");
        assert_eq!(
            first_clause("Folder of the results: p3 has those of P3, and others theirs"),
            "Folder of the results"
        );
    }
}
