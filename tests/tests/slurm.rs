//! Jobs of a real Slurm, on nodes with an address each (`deploy/lab/slurm`): the results of
//! `deploy/slurm.sbatch`, and the reports when a task dies. These tests need Slurm, so they run on request:
//!
//!     cargo test -p flitcast-tests --test suite slurm:: -- --ignored

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use flitcast_tests::files::{assert_same_below, fill, names, set_mode};
use flitcast_tests::lab::{interfaces, namespaces};
use flitcast_tests::processes::{Process, eventually, until};
use flitcast_tests::run::{Finished, Running, begin, run_program, start_with};
use flitcast_tests::slurm::{Job, Slurm};
use flitcast_tests::{Folder, scratch};
use rustix::process::Signal;

/// Half a second for a better cause, two for the last reports, three for PEs to leave; then
/// Slurm ends the step and the job.
const BOUND: Duration = Duration::from_secs(20);

fn script() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/slurm.sbatch");
    script.display().to_string()
}

/// In place of srun: it starts the tasks on this machine.
const SRUN: &str = "#!/bin/sh
while case $1 in -*) ;; *) false;; esac; do
    if [ \"$1\" = --ntasks ]; then tasks=$2; shift; fi
    shift
done
task=0
while [ $task -lt $tasks ]; do
    SLURM_PROCID=$task SLURM_LAUNCH_NODE_IPADDR=127.0.0.1 \"$@\" &
    task=$((task + 1))
done
wait
";

/// Runs a command in a job of three tasks.
#[track_caller]
fn in_job(dir: &Folder, line: &str) -> Finished {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(dir.join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(all).expect("no folder has a colon");
    // The job's number is that of this process, so that its port differs from those of other tests.
    let job = std::process::id().to_string();
    let variables = [("SLURM_JOB_ID", job.as_str()), ("SLURM_NTASKS", "3")];
    let variables = variables.map(|(name, value)| (name, Path::new(value)));
    let variables = [&[("PATH", Path::new(&path))][..], &variables].concat();
    start_with(dir.words(line), &variables).finish()
}

#[test]
fn inside_a_job_its_tasks_are_the_pes() {
    let dir = scratch();
    fs::create_dir(dir.join("bin")).expect("it can be made");
    set_mode(&dir.put("bin/srun", SRUN), 0o755);
    for (pe, bytes) in [(1, 100_000), (2, 1)] {
        fill(&dir.join(format!("shards/p{pe}")), bytes);
    }
    let done = in_job(&dir, "scatter --input @/shards --output @/there").ok();
    done.prints(&[
        "scatter on star:3 in Slurm by fdf: 3 PEs",
        "certificates made for this run",
    ]);
    let line = "gather --input @/there --output @/back --retry 1 --tree path:3 --cluster srun";
    in_job(&dir, line)
        .ok()
        .prints(&["gather on path:3 in Slurm"]);
    assert_same_below(&dir.join("shards"), &dir.join("back"));
    // An option has priority.
    let here = in_job(&dir, "scatter -n 2 --input @/shards --output @/here").ok();
    assert!(!here.stdout.contains("in Slurm"), "{}", here.stdout);
    set_mode(
        &dir.put(
            "bin/srun",
            "#!/bin/sh\necho no such partition >&2\nexit 3\n",
        ),
        0o755,
    );
    let failed = in_job(&dir, "gather --size 1KiB");
    failed.fails(1, &["srun ended with exit status: 3: no such partition"]);
}

#[test]
#[ignore = "needs root, iproute2, slurm-wlm and munge"]
fn a_job_needs_neither_tasks_nor_keys_of_its_own() {
    let slurm = Slurm::up(4);
    for (pe, bytes) in [(1, 1), (2, 300_000), (3, 3_000_000)] {
        fill(&slurm.path(&format!("shards/p{pe}")), bytes);
    }
    let text = "#!/bin/bash\nset -e\n\
        \"$FLITCAST\" scatter --input \"$PWD/shards\" --output \"$PWD/there\"\n\
        \"$FLITCAST\" gather --input \"$PWD/there\" --output \"$PWD/back\"\n\
        \"$FLITCAST\" gather -n 2 --size 1KiB\n";
    slurm.dir.put("job", text);
    let (code, output) = slurm.submit("--nodes=4 job").finish();
    assert_eq!(code, Some(0), "{output}");
    assert!(
        output.contains("scatter on star:4 in Slurm by fdf: 4 PEs"),
        "{output}"
    );
    assert!(output.contains("TLS 1.3 both ways"), "{output}");
    let inside = output.matches(" in Slurm by ").count();
    assert_eq!(inside, 2, "-n has its PEs on one host: {output}");
    // The table of each names the hosts.
    assert_eq!(output.matches("\n  P3  10.119.0.4 ").count(), 2, "{output}");
    assert_same_below(&slurm.path("shards"), &slurm.path("back"));
    assert_eq!(
        names(&slurm.path("")),
        ["back", "job", "out", "shards", "there"]
    );
}

#[test]
#[ignore = "needs root, iproute2, slurm-wlm and munge"]
fn a_job_scatters_runs_a_command_and_gathers() {
    let slurm = Slurm::up(4);
    for (pe, bytes) in [(1, 1), (2, 300_000), (3, 3_000_000), (4, 0)] {
        fill(&slurm.path(&format!("shards/p{pe}")), bytes);
    }
    // Twice: nothing of the first job prevents the second.
    for round in ["first", "second"] {
        let line = format!("--nodes=4 --ntasks=5 {} shards {round} cat", script());
        let (code, output) = slurm.submit(&line).finish();
        assert_eq!(code, Some(0), "{output}");
        assert_eq!(names(&slurm.path(round)), names(&slurm.path("shards")));
        for pe in 1..=4 {
            let read = |folder: &str| fs::read(slurm.path(&format!("{folder}/p{pe}"))).unwrap();
            assert!(read("shards") == read(round), "P{pe}");
        }
        let expected = "scatter on star:5 in Slurm by fdf: 5 PEs, ";
        assert!(output.contains(expected), "{output}");
        assert!(output.contains("TLS 1.3 both ways"), "{output}");
    }
    // Neither keys nor anything else.
    assert_eq!(names(&slurm.path("")), ["first", "out", "second", "shards"]);
    slurm.down_then(|| {
        let ours = |name: &String| name.starts_with("fcslurm");
        assert!(!namespaces().iter().any(ours));
        assert!(!interfaces().iter().any(ours));
    });
}

/// Another user of the node could have prepared these, knowing the next job's number.
#[test]
#[ignore = "needs root, iproute2, slurm-wlm and munge"]
fn a_job_writes_nowhere_where_others_have_put_a_link_or_a_folder() {
    let slurm = Slurm::up(2);
    fill(&slurm.path("shards/p1"), 1000);
    let (theirs, tmp) = (slurm.path("theirs"), slurm.path("tmp"));
    for folder in [&theirs, &tmp] {
        fs::create_dir(folder).expect("it can be made");
        set_mode(folder, 0o1777);
    }
    // The first job that a Slurm has is number 1.
    for job in ["flitcast-1", "flitcast-2"] {
        symlink(&theirs, tmp.join(job)).expect("it can be made");
    }
    let line = format!("--nodes=2 --ntasks=2 {} shards results", script());
    let mut spying = slurm.job(&format!("{line} {}/spy", slurm.path("").display()));
    // It finds a folder that no other user can read.
    let spy = "#!/bin/sh\nstat --format='%a %u %n' \"$LOCAL\"\n";
    set_mode(&slurm.dir.put("spy", spy), 0o755);
    spying.env("TMPDIR", &tmp);
    let (code, output) = slurm.wait(spying).finish();
    assert_eq!(code, Some(0), "{output}");
    let found = slurm.dir.read("results/p1");
    let own = format!("700 0 {}/flitcast-", tmp.display());
    assert!(found.starts_with(&own), "{found}");
    assert_eq!(names(&theirs), Vec::<String>::new());
    // The job's own folder is gone.
    assert_eq!(names(&tmp), ["flitcast-1", "flitcast-2"]);
}

#[test]
#[ignore = "needs root, iproute2, slurm-wlm and munge"]
fn a_job_whose_pes_are_stuck_ends() {
    let slurm = Slurm::up(2);
    fill(&slurm.path("shards/p1"), 1000);
    // In place of the binary: its PEs ignore requests.
    let deaf = "#!/bin/sh\ncase $1 in node) trap '' TERM; while :; do sleep 1; done;; esac\n\
        [ \"$1\" = ca ] || exit 3\n";
    let deaf = slurm.dir.put("deaf", deaf);
    set_mode(&deaf, 0o755);
    let line = format!("--nodes=2 --ntasks=2 {} shards results cat", script());
    let mut job = slurm.job(&line);
    job.env("FLITCAST", deaf);
    let (code, output) = slurm.wait(job).finish();
    assert_eq!(code, Some(3), "{output}");
    let mut left = names(&slurm.path(""));
    left.retain(|name| name.starts_with(".flitcast-keys"));
    assert_eq!(left, [""; 0]);
}

/// Starts a job and waits until its round runs and each task has left its process number.
fn in_mid_round(slurm: &Slurm) -> Job<'_> {
    let text = "#!/bin/bash\n\
        \"$FLITCAST\" ca init keys --pes 4\n\
        mkdir pids\n\
        srun --overlap --kill-on-bad-exit=0 bash -c 'echo $$ >pids/$SLURM_PROCID; \
            exec \"$FLITCAST\" node --join slurm --credentials keys' &\n\
        \"$FLITCAST\" gather --cluster slurm --tree kary:2:4 --credentials keys --size 400GiB -v\n";
    slurm.dir.put("job", text);
    let job = slurm.submit("--nodes=4 --ntasks=4 job");
    job.wait_for("triggered");
    job
}

#[test]
#[ignore = "needs root, iproute2, slurm-wlm and munge"]
fn a_task_that_is_killed_is_named_and_ends_the_job() {
    let slurm = Slurm::up(4);
    let job = in_mid_round(&slurm);
    let pid = slurm.dir.read("pids/1").trim().parse();
    let process = Process::find(pid.expect("a number"));
    process.expect("it runs").signal(Signal::KILL);
    let began = Instant::now();
    let (code, output) = job.finish();
    let took = began.elapsed();
    assert_eq!(code, Some(1), "{output}");
    for part in [
        "error: P1 is gone: its ",
        "where: P1, joined from 10.119.0.2:",
        "cut off with it: P3",
    ] {
        assert!(output.contains(part), "no `{part}` in\n{output}");
    }
    assert!(took < BOUND, "{took:?}: {output}");
}

#[test]
#[ignore = "needs root, iproute2, slurm-wlm and munge"]
fn a_step_that_is_cancelled_ends_the_job() {
    let slurm = Slurm::up(4);
    let job = in_mid_round(&slurm);
    let began = Instant::now();
    run_program(&mut slurm.command("scancel", "1.0")).with_code(0);
    let (code, output) = job.finish();
    let took = began.elapsed();
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains(" is gone: its "), "{output}");
    assert!(took < BOUND, "{took:?}: {output}");
}

/// Creates a cluster file that lets Slurm start four PEs, with these further lines of `[launch]`
/// and below it; and their keys.
fn cluster(slurm: &Slurm, below: &str) -> String {
    if !slurm.path("keys").exists() {
        run_program(&mut slurm.command(flitcast_tests::flitcast(), "ca init keys --pes 4"))
            .with_code(0);
    }
    let text = format!(
        "coordinator = '0.0.0.0:7117'\nsecurity.credentials = 'keys'\n\
         [launch]\nkind = 'slurm'\n{below}"
    );
    let file = slurm.dir.put("cluster.toml", text);
    format!("--cluster {}", file.display())
}

fn pe(node: u32, parent: Option<u32>) -> String {
    let parent = parent.map(|parent| format!("parent = 'n{parent}'\n"));
    let parent = parent.unwrap_or_default();
    format!("[[pe]]\nname = 'n{node}'\naddress = '10.119.0.{node}'\n{parent}")
}

/// P0 is on the last node, and the others follow in a line: their places show that Slurm received
/// the list.
fn line_of_nodes() -> String {
    [pe(4, None), pe(2, Some(4)), pe(3, Some(2)), pe(1, Some(3))].concat()
}

fn command(slurm: &Slurm, line: &str) -> Running {
    begin(slurm.command(flitcast_tests::flitcast(), line))
}

/// Waits for the end of a command, and until no process is left; srun's own helpers end just after
/// it.
#[track_caller]
fn over(mut running: Running) -> Finished {
    let finished = running.coordinator_ends();
    until("nobody is left", || running.processes().is_empty());
    finished
}

#[test]
#[ignore = "needs root, iproute2, slurm-wlm and munge"]
fn a_cluster_file_has_slurm_start_the_pes() {
    let slurm = Slurm::up(4);
    // The messages of P1, P2 and P3.
    for (name, bytes) in [("n2", 1), ("n3", 300_000), ("n1", 0)] {
        fill(&slurm.path(&format!("shards/{name}")), bytes);
    }
    let cluster = cluster(&slurm, &line_of_nodes());
    let dir = slurm.path("").display().to_string();
    let line = format!("scatter {cluster} --input {dir}shards --output {dir}there -v");
    let scattered = over(command(&slurm, &line)).ok();
    scattered.prints(&["TLS 1.3 both ways"]);
    let gather = format!("gather {cluster} --input {dir}there --output {dir}back");
    over(command(&slurm, &gather)).ok();
    assert_same_below(&slurm.path("shards"), &slurm.path("back"));

    let map =
        format!("map {cluster} --input {dir}shards --work {dir}work --output {dir}sizes -- wc -c");
    over(command(&slurm, &map)).ok();
    for (name, bytes) in [("n2", "1"), ("n3", "300000"), ("n1", "0")] {
        let stdout = slurm.dir.read(&format!("sizes/{name}/stdout"));
        assert_eq!(stdout.trim(), bytes, "{name}");
    }
}

#[test]
#[ignore = "needs root, iproute2, slurm-wlm and munge"]
fn a_task_of_a_step_of_ours_that_dies_is_left_out() {
    let slurm = Slurm::up(4);
    let star = [pe(1, None), pe(2, Some(1)), pe(3, Some(1)), pe(4, Some(1))];
    let cluster = cluster(&slurm, &star.concat());
    let line = format!("gather {cluster} --lengths 400GiB,400GiB,1KiB -v --retry 1");
    let mut running = command(&slurm, &line);
    running.wait_for(&["joined", "pe=P2", "address=10.119.0.3:"]);
    running.wait_for(&["triggered"]);
    // All of the tasks have the same command line; the environment contains the number.
    let p2 = eventually("P2 is found", || {
        let is_p2 = |process: &Process| {
            let environment = fs::read(format!("/proc/{}/environ", process.pid));
            let environment = environment.unwrap_or_default();
            let mut variables = environment.split(|byte| *byte == 0);
            variables.any(|variable| variable == b"SLURM_PROCID=2")
        };
        running.processes().into_iter().find(is_p2)
    });
    p2.signal(Signal::KILL);
    running.wait_for(&["P2 ", " is dead", "going on without it"]);
    // Another step, in which P3 is the third task.
    running.wait_for(&["launched", "pes=3"]);
    running.signal(Signal::INT);
    over(running).with_code(130);
}

#[test]
#[ignore = "needs root, iproute2, slurm-wlm and munge"]
fn refusals_of_srun_or_a_task_are_reported() {
    let slurm = Slurm::up(4);
    let below = format!("options = ['--partition=none']\n{}", line_of_nodes());
    let cluster = cluster(&slurm, &below);
    let refused = over(command(&slurm, &format!("gather {cluster} --size 1KiB"))).with_code(1);
    let expected =
        "error: the cluster did not come up: srun ended with exit status: 1: srun: error: ";
    refused.stderr_has(&[expected]);

    // A task whose keys are missing.
    let mut srun = slurm.command("srun", "--ntasks=1");
    srun.arg(flitcast_tests::flitcast());
    let refused = run_program(srun.args(["node", "--join", "slurm", "--credentials", "nowhere"]));
    assert_ne!(refused.code, Some(0), "{}", refused.stderr);
    refused.stderr_has(&["nowhere/"]);
}
