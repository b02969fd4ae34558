//! The values of single options: the size of flits and packets, the order of messages, the output directory,
//! and the rules that choose among files.

use std::path::Path;

use anyhow::{anyhow, bail, ensure};
use flitcast_node::payload::{self, Others, OutputLock};
use flitcast_plan::Algorithm;
use flitcast_proto::Tree;
use flitcast_proto::ops::Direction;
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};

use crate::files::user_file::{self, FileKind};
use crate::job::fault::of_output;
use crate::options::args::RoundArgs;
use crate::options::order::{GivenOrder, MessageOrder};
use crate::options::transfer::SelectionArgs;
use crate::site::topology::of_option;
use crate::system::process;
use crate::text::faults::Faults;
use crate::text::units::{Bytes, parse_bytes};

/// Parses the payload of a flit.
pub fn flit_size(text: &str) -> anyhow::Result<u32> {
    let bytes = parse_bytes(text).map_err(of_option("--flit-size"))?;
    match u32::try_from(bytes) {
        Ok(fits) if (MIN_FLIT_BYTES..=MAX_FLIT_BYTES).contains(&fits) => Ok(fits),
        _ => bail!(
            "--flit-size {}: a flit has {} to {}",
            Bytes(bytes),
            Bytes(MIN_FLIT_BYTES.into()),
            Bytes(MAX_FLIT_BYTES.into())
        ),
    }
}

/// Returns all errors of packets: for an operation whose messages go as a whole, beside a size of flits, or
/// where an algorithm or a tree is to be chosen.
pub fn packets_faults(
    whole: Option<String>,
    has_flit_size: bool,
    is_open: bool,
) -> impl Iterator<Item = anyhow::Error> {
    let whole = whole.map(|operation| {
        anyhow!(
            "--packets is for a scatter by fdf, for a gather by shoulder-tap or certification and for \
             any broadcast, not for {operation}: --flit-size says how large flits are there"
        )
    });
    let two_sizes = has_flit_size
        .then(|| anyhow!("--packets and --flit-size both define the size of flits; choose one"));
    let open = is_open.then(|| {
        anyhow!(
            "--packets is for one algorithm on one tree: name them, or leave it out, since auto chooses \
             among flits as well"
        )
    });
    [whole, two_sizes, open].into_iter().flatten()
}

/// Returns the typed order, or the error that the algorithm `other` has none to choose; `by` names the
/// operation and the algorithms that have one.
pub fn order_by(
    order: Option<String>,
    other: Option<&str>,
    by: &str,
) -> anyhow::Result<Option<String>> {
    match (order, other) {
        (Some(order), Some(algorithm)) => bail!("--order {order} is for {by}, not by {algorithm}"),
        (order, _) => Ok(order),
    }
}

/// Parses an order of messages of these lengths, by PE index, as far as they are known; the PEs have these
/// names, or none. Returns all errors in it.
pub fn parse_order(
    text: &str,
    operation: Algorithm,
    (tree, names): (&Tree, &[String]),
    lengths: Option<&[u64]>,
) -> Result<MessageOrder, Faults> {
    let is_gather = operation.collective().direction() == Direction::Up;
    let order = match is_gather {
        true => GivenOrder::parse(text, names).map(MessageOrder::Given),
        false => MessageOrder::parse(text, names),
    };
    let faults = match &order {
        Ok(MessageOrder::Given(given)) if is_gather => given.faults_of_gather(tree, lengths),
        Ok(MessageOrder::Given(given)) => given.faults(tree, lengths),
        Ok(_) => Vec::new(),
        Err(fault) => vec![fault.clone()],
    };
    match order {
        Ok(order) if faults.is_empty() => Ok(order),
        _ => Err(Faults::all(faults.into_iter().map(of_option("--order")))),
    }
}

/// Creates the output directory, unless nothing is written to it; returns the error if that fails.
pub fn create_output(args: &RoundArgs) -> Option<anyhow::Error> {
    let output = args.output.as_ref().filter(|_| !args.dry_run)?;
    let error = payload::create_durable(output).err()?;
    Some(of_output(
        output,
        format_args!("cannot be created: {error}"),
    ))
}

/// Returns the error in an output directory, without writing to it; with `has_rows` it has a folder of
/// messages for each PE. Entries named after the PEs may exist: PEs compare them later.
pub fn output_fault(
    output: &Path,
    entries: (bool, Others),
    input: Option<&Path>,
    force: bool,
) -> Option<anyhow::Error> {
    let why = check(output, entries, input, force).err()?;
    Some(of_output(output, why))
}

fn check(
    output: &Path,
    (has_rows, pes): (bool, Others),
    input: Option<&Path>,
    force: bool,
) -> anyhow::Result<()> {
    let mut standing = output;
    let metadata = loop {
        match std::fs::metadata(standing) {
            Ok(metadata) => break metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let shown = standing.display();
                ensure!(
                    !standing.is_symlink(),
                    "`{shown}` is a symlink to what does not exist; make the folder that it leads to, or \
                     remove the symlink"
                );
                standing = match standing.parent() {
                    Some(above) if above.as_os_str().is_empty() => Path::new("."),
                    Some(above) => above,
                    None => return Err(error.into()),
                };
            }
            Err(error) => return Err(error.into()),
        }
    };
    let shown = standing.display();
    ensure!(metadata.is_dir(), "{shown} is not a directory");
    process::check_writable(standing)
        .map_err(|error| anyhow!("{shown} is not writable: {error}"))?;
    if standing == output {
        OutputLock::take(output)?;
        if let Some(found) = payload::in_the_way(output, has_rows, pes)?.filter(|_| !force) {
            bail!(
                "it holds files already; --force replaces those that arrive anew, and leaves {} alone",
                found.display()
            );
        }
    }
    // A run must not write to the files that it reads.
    if let Some(Ok(input)) = input.map(Path::canonicalize)
        && let Ok(standing) = standing.canonicalize()
    {
        ensure!(!standing.starts_with(&input), "it lies inside the input");
    }
    Ok(())
}

/// Maximum length and number of all rules together: each PE receives them.
const MAX_RULE_BYTES: usize = 64 * 1024;
const MAX_RULES: usize = 4096;

const FILE: FileKind = FileKind {
    name: "file of rules",
    max_bytes: MAX_RULE_BYTES as u64,
};

/// Returns the rules, those that take files first: the last one that matches decides.
///
/// # Errors
///
/// Returns an error if a file cannot be read, or if a rule is empty, has a line break or is too long.
pub fn rules(args: &SelectionArgs) -> anyhow::Result<Vec<String>> {
    let mut rules = Vec::new();
    for pattern in &args.include {
        ensure!(
            !pattern.starts_with('!'),
            "--include {pattern}: a pattern of --include cannot begin with `!`; leave files out with --exclude"
        );
        rules.push(format!("!{pattern}"));
    }
    let is_open = rules.is_empty();
    for path in &args.exclude_from {
        let text = user_file::load(FILE, path, |text| Ok(text.to_owned()));
        let text = text.map_err(|fault| anyhow!("--exclude-from: {fault}"))?;
        let lines = text
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        rules.extend(lines.map(str::to_owned));
    }
    rules.extend(args.exclude.iter().cloned());
    for (option, pattern) in patterns(args) {
        ensure!(
            !pattern.trim_matches(['/', ' ', '!']).is_empty()
                && !pattern.starts_with('#')
                && !pattern.contains('\n'),
            "{option}: `{}` matches no file; write a pattern like '*.tmp'",
            pattern.escape_debug()
        );
    }
    // Where all files are sent, taking some changes nothing; as the first rule it would leave out the
    // others.
    if is_open {
        let first = rules.iter().position(|rule| !rule.starts_with('!'));
        rules.drain(..first.unwrap_or(rules.len()));
    }
    let count = rules.len();
    ensure!(
        count <= MAX_RULES,
        "--exclude and --include: there can be {MAX_RULES} rules, and not {count}"
    );
    let bytes: usize = rules.iter().map(String::len).sum();
    ensure!(
        bytes <= MAX_RULE_BYTES,
        "--exclude and --include: {bytes} bytes of rules, of which each PE receives at most {MAX_RULE_BYTES}"
    );
    Ok(rules)
}

fn patterns(args: &SelectionArgs) -> impl Iterator<Item = (&'static str, &String)> {
    let include = args.include.iter().map(|pattern| ("--include", pattern));
    let exclude = args.exclude.iter().map(|pattern| ("--exclude", pattern));
    include.chain(exclude)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(include: &[&str], exclude: &[&str]) -> SelectionArgs {
        let texts = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect();
        SelectionArgs {
            archive: false,
            include: texts(include),
            exclude: texts(exclude),
            exclude_from: Vec::new(),
        }
    }

    #[test]
    fn included_files_precede_excluded_ones() {
        let of = |include, exclude| rules(&of(include, exclude)).unwrap();
        assert_eq!(
            of(&["*.rs"], &["target/", "!x"]),
            ["!*.rs", "target/", "!x"]
        );
        assert_eq!(of(&[], &["!a", "*.o", "!b.o"]), ["*.o", "!b.o"]);
        assert_eq!(of(&[], &["!a"]), [""; 0]);
    }

    #[test]
    fn rules_of_a_file_precede_the_others() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "# build\n\n*.o\n!keep.o\n").unwrap();
        let args = SelectionArgs {
            exclude_from: vec![file.path().to_owned()],
            ..of(&[], &["/keep.o"])
        };
        assert_eq!(rules(&args).unwrap(), ["*.o", "!keep.o", "/keep.o"]);
    }

    #[test]
    fn a_rule_that_matches_nothing_is_refused() {
        for (include, exclude, expected) in [
            (&["!a"][..], &[][..], "--include !a: a pattern"),
            (&[""], &[], "--include: `` matches no file"),
            (&[], &["/"], "--exclude: `/` matches no file"),
            (&[], &["a\nb"], r"--exclude: `a\nb` matches no file"),
        ] {
            let refused = rules(&of(include, exclude)).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
        let long = "x".repeat(MAX_RULE_BYTES + 1);
        let refused = rules(&of(&[], &[&long])).unwrap_err().to_string();
        assert!(refused.contains("65537 bytes of rules"), "{refused}");
        let many = rules(&of(&[], &["x"; MAX_RULES + 1]))
            .unwrap_err()
            .to_string();
        assert!(many.contains("and not 4097"), "{many}");
        let args = SelectionArgs {
            exclude_from: vec!["/nowhere/at/all".into()],
            ..SelectionArgs::default()
        };
        let refused = rules(&args).unwrap_err().to_string();
        let expected = "--exclude-from: cannot read the file of rules /nowhere";
        assert!(refused.contains(expected), "{refused}");
    }
}
