//! Launching what is no PE. Time is paused: a limit passes as soon as there is nothing
//! left to wait for but the limit.

use super::*;

/// Launches three shells that do `script` instead of playing a PE: what a PE is told
/// comes behind it as arguments.
async fn launch(script: &str) -> LaunchError {
    let logs = LogArgs {
        args: vec!["-c".to_owned(), script.to_owned()],
        json: false,
    };
    let launched = Cluster::launch(Path::new("/bin/sh"), 3, &logs, &Console::new()).await;
    launched.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn who_never_registers_is_named() {
    let error = launch("exec sleep 1000").await;
    let expected = "after 30 s there is still no word from P0, P1, P2";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn who_dies_before_it_registers_is_named_with_its_last_words() {
    let error = launch("echo no such thing >&2; exit 127").await;
    let LaunchError::Died { last_words, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(last_words, &["no such thing"]);
    let message = error.to_string();
    assert!(
        message.contains("ended with exit status 127 before it registered"),
        "{message}"
    );
    assert!(
        message.starts_with('P') && message.ends_with("no such thing"),
        "{message}"
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let logs = LogArgs {
        args: Vec::new(),
        json: false,
    };
    let missing = Path::new("/no/such/flitcast");
    let error = Cluster::launch(missing, 1, &logs, &Console::new())
        .await
        .unwrap_err();
    assert!(
        error.to_string().starts_with("cannot start a process: "),
        "{error}"
    );
}
