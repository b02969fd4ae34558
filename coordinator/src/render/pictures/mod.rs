//! Pictures of a run, in the files that `--trace` and `--report` name. `trace` and `page` define
//! their content.

pub mod scene;
mod trace;

use std::io;
use std::path::Path;

use crate::render::page::Page;
use crate::render::report::nothing_to_send;
use flitcast_cluster::job::request::Request;
use flitcast_cluster::options::pictures::PictureArgs;
use flitcast_cluster::rounds::outcome::Outcome;
use flitcast_cluster::text::phrases::shell_word;
use flitcast_cluster::text::whole_file::write_whole;
use scene::Scene;

/// Draws a run and returns the files that were written. `is_repeated` is whether messages were in the
/// output before.
///
/// # Errors
///
/// Returns an error that names the file if it cannot be written.
pub fn draw<'a>(
    pictures: &'a PictureArgs,
    request: &Request,
    outcome: &Outcome,
    is_repeated: bool,
) -> io::Result<Vec<&'a Path>> {
    let mut written: Vec<&Path> = Vec::new();
    let Some(scene) = Scene::of(request, outcome) else {
        return Ok(written);
    };
    if let Some(path) = &pictures.trace {
        write_whole(path, |out| trace::write(&scene, out))?;
        written.push(path);
    }
    if let Some(path) = &pictures.report {
        let page = Page {
            title: outcome.rounds.decisions.title(),
            command: command_line(std::env::args()),
            run: crate::render::json::json_value(request, outcome),
            rounds_ns: &outcome.rounds_ns,
            nothing: nothing_to_send(is_repeated),
            scene: &scene,
            fit: &outcome.rounds.measured.fits,
        };
        write_whole(path, |out| page.write(out))?;
        written.push(path);
    }
    Ok(written)
}

/// Returns the command line, quoted so that it can be typed again.
fn command_line(args: impl Iterator<Item = String>) -> String {
    let mut words = vec!["flitcast".to_owned()];
    words.extend(args.skip(1).map(shell_word));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_typed_again() {
        let typed = [
            ("/usr/bin/flitcast", "flitcast"),
            ("--lengths", "--lengths"),
            ("uniform:0..1MiB:7", "uniform:0..1MiB:7"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("two words", "'two words'"),
            ("$HOME;*", "'$HOME;*'"),
        ];
        let line = command_line(typed.iter().map(|(word, _)| (*word).to_owned()));
        assert_eq!(line, typed.map(|(_, quoted)| quoted).join(" "));
    }
}
