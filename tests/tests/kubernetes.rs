//! `deploy/kubernetes.yaml`, as far as it can be tried without a cluster: the cluster file in
//! it is good, and counts the same PEs as the rest. `.ci/run` holds it against Kubernetes'
//! published schemas.

use flitcast_tests::{run, scratch};

const MANIFESTS: &str = include_str!("../../deploy/kubernetes.yaml");
const PES: usize = 8;

/// The cluster file that the ConfigMap holds.
fn cluster_file() -> String {
    let (_, behind) = MANIFESTS
        .split_once("  cluster.toml: |\n")
        .expect("there is one");
    let lines = behind.lines().map_while(|line| line.strip_prefix("    "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn its_cluster_file_is_good() {
    let dir = scratch();
    let credentials = dir.path().join("credentials").display().to_string();
    run(["ca", "init", &credentials, "--pes", &PES.to_string()]).ok();
    let path = dir.path().join("cluster.toml");
    let text = cluster_file().replace("/credentials", &credentials);
    std::fs::write(&path, text).expect("it can be written");
    let checked = run(["check", path.to_str().expect("its path is UTF-8")]).ok();
    for part in [
        "launch      join: others start the processes, within 300s",
        "coordinator 0.0.0.0:4817",
        "there and good: the coordinator, P0, P1,",
        &format!("PEs         {PES}, "),
    ] {
        assert!(checked.stdout.contains(part), "{part}: {}", checked.stdout);
    }
}

#[test]
fn it_has_a_pod_and_a_folder_of_keys_for_each_pe() {
    for part in [
        format!("completions: {PES}\n"),
        format!("parallelism: {PES}\n"),
    ] {
        assert!(MANIFESTS.contains(&part), "{part}");
    }
    for pe in 0..PES {
        for file in ["ca.pem", &format!("p{pe}.pem"), &format!("p{pe}.key")] {
            let item = format!("{{key: {file}, path: {pe}/{file}}}");
            assert!(MANIFESTS.contains(&item), "{item}");
        }
    }
    let items = MANIFESTS.matches("- {key: ").count();
    assert_eq!(items, 3 * PES);
}
