//! Checks that every wait for another process, a disk or a user has a limit, or is listed here with
//! the reason why not.
//!
//! A wait is a call whose return the operating system or the runtime decides. Awaiting a function
//! of this project does not count, because the waits in that function do.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, sources};

/// Calls that wait, up to the beginning of their arguments: `join()` waits for a thread, `join(", ")`
/// does not wait.
const CALLS: &str = "
    accept( acquire( acquire_many( acquire_owned( blocking_recv( blocking_send( cancelled( changed()
    copy(&mut copy_bidirectional( flock( flush( join() join_all( join_next( next_line( notified(
    output() park( peek( poll_fn( poll_read( poll_write( poll_write_vectored( read(&mut read_exact(
    read_line( read_to_end( read_to_string( read_until( recv( recv_from( status() wait( wait_for(
    wait_with_output( waitid( write_all( write_vectored(
";

/// Names of functions in this project that are also names of waiting calls: each counts as a wait
/// if it is awaited, or an arm of one of these macros.
const SHARED: [&str; 9] = [
    "connect", "copy", "lock", "next", "poll", "read", "send", "shutdown", "write",
];
const MACROS: [&str; 3] = ["join!", "select!", "try_join!"];

/// Calls that limit the waits in their arguments.
const LIMITS: [&str; 3] = ["in_time", "timeout", "timeout_at"];
/// Calls that are limits themselves.
const PAUSES: [&str; 3] = ["sleep", "sleep_until", "tick"];

/// A wait without a limit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wait {
    file: String,
    function: String,
    call: String,
}

/// Returns the functions that are defined in these sources.
fn defined(sources: &[Source]) -> BTreeSet<&str> {
    let all = sources.iter().flat_map(|source| {
        let identifiers = source
            .identifiers()
            .filter(|(at, _)| source.is_defined(*at));
        identifiers.map(|(_, name)| name)
    });
    all.collect()
}

/// Returns all waits of a source, each with its position.
fn waits<'a>(source: &'a Source, ours: &BTreeSet<&str>) -> Vec<(usize, &'a str)> {
    let code = &source.code;
    let mut found = BTreeMap::new();
    for call in CALLS.split_whitespace() {
        let (name, _) = call.split_once('(').expect("a call has a bracket");
        for at in source.places(name) {
            if code[at..].starts_with(call) && !source.is_defined(at) {
                found.insert(at, &code[at..at + name.len()]);
            }
        }
    }
    for name in SHARED {
        for at in source.places(name) {
            let is_called = code[at + name.len()..].starts_with('(');
            let around = source.surroundings(at);
            if is_called && around.first().is_some_and(|it| MACROS.contains(it)) {
                found.insert(at, &code[at..at + name.len()]);
            }
        }
    }
    for at in source.places("await") {
        let (awaited, place) = source.awaited(at - ".".len());
        let is_ours = ours.contains(awaited) && !SHARED.contains(&awaited);
        let is_limit = LIMITS.contains(&awaited) || PAUSES.contains(&awaited);
        if !is_ours && !is_limit {
            // A value that has no name.
            let awaited = if awaited.is_empty() { "(..)" } else { awaited };
            found.insert(place, awaited);
        }
    }
    found.into_iter().collect()
}

/// Returns the functions of this project that are called only under a limit, or by such functions.
fn limited<'a>(sources: &'a [Source], ours: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let mut calls: BTreeMap<&str, Vec<(&Source, usize)>> = BTreeMap::new();
    for source in sources {
        for (at, name) in source.identifiers() {
            if ours.contains(name) && !source.is_defined(at) {
                calls.entry(name).or_default().push((source, at));
            }
        }
    }
    let mut limited = BTreeSet::new();
    loop {
        let is_limited = |(_, places): &(&&str, &Vec<(&Source, usize)>)| {
            let mut places = places.iter();
            places.all(|(source, at)| has_limit(source, *at, &limited))
        };
        let now: BTreeSet<&str> = calls.iter().filter(is_limited).map(|(f, _)| *f).collect();
        if now == limited {
            return limited;
        }
        limited = now;
    }
}

/// Returns whether the code at a position is under a limit, directly or through the name of its
/// block, or is in a function that is.
fn has_limit(source: &Source, at: usize, limited: &BTreeSet<&str>) -> bool {
    let around = source.surroundings(at);
    let names = source.names_of_blocks(at);
    let is_given_later = |name: &&str| {
        let later = source.places(name).into_iter().filter(|place| *place > at);
        let mut uses = later.take_while(|place| source.begin_of_function(*place) < at);
        uses.any(|place| LIMITS.contains(source.surroundings(place).first().unwrap_or(&"")))
    };
    around.iter().any(|name| LIMITS.contains(name))
        || names.iter().any(is_given_later)
        || limited.contains(source.function(at))
}

/// Returns all waits without a limit, with their lines.
fn unlimited(sources: &[Source]) -> BTreeMap<Wait, Vec<usize>> {
    let ours = defined(sources);
    let limited = limited(sources, &ours);
    let mut found: BTreeMap<Wait, Vec<usize>> = BTreeMap::new();
    for source in sources {
        for (at, call) in waits(source, &ours) {
            if !has_limit(source, at, &limited) {
                let wait = Wait {
                    file: source.file.clone(),
                    function: source.function(at).to_owned(),
                    call: call.to_owned(),
                };
                found.entry(wait).or_default().push(source.line(at));
            }
        }
    }
    found
}

/// Returns the waits that may have no limit, each below its reason.
fn allowed() -> BTreeSet<Wait> {
    let lines = include_str!("waits.txt").lines().map(str::trim);
    let mut has_reason = false;
    let mut allowed = BTreeSet::new();
    for line in lines.filter(|line| !line.is_empty()) {
        if line.starts_with('#') {
            has_reason = true;
            continue;
        }
        assert!(has_reason, "without a reason: {line}");
        let words: Vec<&str> = line.split_whitespace().collect();
        let [file, function, calls @ ..] = &words[..] else {
            panic!("no file and function: {line}");
        };
        assert!(!calls.is_empty(), "no call: {line}");
        for call in calls {
            let wait = Wait {
                file: (*file).to_owned(),
                function: (*function).to_owned(),
                call: (*call).to_owned(),
            };
            assert!(allowed.insert(wait), "twice: {line}");
        }
    }
    allowed
}

#[test]
fn every_wait_has_a_limit_or_a_reason() {
    let mut unknown = unlimited(&sources(&["node", "coordinator/cluster", "coordinator"]));
    let mut stale = allowed();
    stale.retain(|wait| unknown.remove(wait).is_none());
    assert!(
        unknown.is_empty(),
        "these wait without a limit: give them one, or a reason in waits.txt\n{unknown:#?}"
    );
    assert!(
        stale.is_empty(),
        "waits.txt has what is no more: {stale:#?}"
    );
}

/// A call with `None` for a deadline would have no limit. Even a watched round has a time for the
/// next check.
#[test]
fn no_call_passes_none_for_a_deadline() {
    let mut found = Vec::new();
    for source in sources(&["node", "coordinator/cluster", "coordinator"]) {
        if source.code.contains("wait(None)") {
            found.push(source.file.clone());
        }
    }
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_wait_that_is_planted_is_found() {
    let text = r#"
        async fn plain(a: A) { a.recv().await; }
        async fn bounded(a: A) { timeout(LIMIT, a.recv()).await; }
        async fn named(a: A) { let rest = async { a.recv().await }; timeout(LIMIT, rest).await; }
        async fn late(a: A) { let rest = async { a.recv().await }; rest.await; }
        async fn called(a: A) { a.recv().await; }
        async fn caller(a: A) { timeout(LIMIT, called(a)).await; plain(a).await; }
        async fn chosen(a: A) { select! { b = a.next() => b, () = sleep(LIMIT) => {} } }
        async fn unknown(a: A) { a.till_doomsday().await; }
        fn thread(a: A) { a.join(); a.join(", "); }
        #[cfg(test)] mod tests { fn test(a: A) { a.accept() } }
    "#;
    let found = unlimited(&[Source::new("planted.rs", text)]);
    let found = found.keys().map(|wait| (&*wait.function, &*wait.call));
    let found: Vec<(&str, &str)> = found.collect();
    let expected = [
        ("chosen", "next"),
        ("late", "recv"),
        ("late", "rest"),
        ("plain", "recv"),
        ("thread", "join"),
        ("unknown", "till_doomsday"),
    ];
    assert_eq!(found, expected);
}
