//! Pictures of a run, in the files that `--trace` and `--report` name. `trace` and `page` define
//! their content.

pub mod scene;
mod trace;

use std::env::args_os;
use std::io;
use std::iter::once;
use std::path::Path;

use crate::render::page::Page;
use crate::render::report::nothing_to_send;
use flitcast_cluster::job::request::Request;
use flitcast_cluster::options::transfer::PictureArgs;
use flitcast_cluster::rounds::outcome::Outcome;
use flitcast_cluster::text::phrases::command_line;
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
            command: command_line(once("flitcast".into()).chain(args_os().skip(1))),
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
