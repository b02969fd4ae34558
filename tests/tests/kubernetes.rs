//! `deploy/kubernetes.yaml`, as far as it can be tested without a cluster: its cluster file is
//! valid and agrees with the numbers of PEs elsewhere; the access of its pods is limited. `.ci/run`
//! checks it against Kubernetes' published schemas.

use flitcast_tests::scratch;

const MANIFESTS: &str = include_str!("../../deploy/kubernetes.yaml");
const PES: usize = 8;

/// Returns the cluster file that the ConfigMap holds.
fn cluster_file() -> String {
    let found = MANIFESTS.split_once("  cluster.toml: |\n");
    let (_, behind) = found.expect("there is one");
    let lines = behind.lines().map_while(|line| line.strip_prefix("    "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn its_cluster_file_is_good() {
    let dir = scratch();
    dir.run(&format!("ca init @/credentials --pes {PES}")).ok();
    let credentials = dir.shown("credentials");
    let text = cluster_file().replace("/credentials", &credentials);
    dir.put("cluster.toml", text);
    dir.run("check @/cluster.toml").ok().prints(&[
        "launch      join: others start the processes, within 300s",
        "coordinator 0.0.0.0:4817",
        "there and good: the coordinator, P0, P1,",
        &format!("PEs         {PES}, "),
    ]);
}

#[test]
fn it_has_a_pod_and_a_folder_of_keys_for_each_pe() {
    for key in ["completions", "parallelism"] {
        let part = format!("{key}: {PES}\n");
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

/// Returns the values after `key: ` on each line that begins with it.
fn values<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let key = format!("{key}: ");
    let lines = text.lines().map(|line| line.trim_start_matches([' ', '-']));
    lines.filter_map(|line| line.strip_prefix(&key)).collect()
}

/// Returns the documents of this kind.
fn documents(kind: &str) -> Vec<&'static str> {
    let all = MANIFESTS.split("\n---\n");
    all.filter(|it| values(it, "kind") == [kind]).collect()
}

#[test]
fn its_images_are_named_by_digest() {
    for job in documents("Job") {
        let images = values(job, "image");
        assert_eq!(images.len(), 1, "{images:?}");
        let (_, digest) = images[0].split_once("@sha256:").expect(images[0]);
        let is_hex = digest.bytes().all(|b| b.is_ascii_hexdigit());
        assert!(digest.len() == 64 && is_hex, "{digest}");
    }
}

#[test]
fn what_a_pod_may_hold_and_write_is_bounded() {
    let volumes = values(MANIFESTS, "emptyDir");
    assert_eq!(volumes.len(), 2, "{volumes:?}");
    for volume in volumes {
        assert!(volume.contains("sizeLimit: "), "{volume}");
    }
    let jobs = documents("Job");
    assert_eq!(jobs.len(), 2);
    for job in jobs {
        let limits = values(job, "limits");
        let [limits] = limits[..] else {
            panic!("{limits:?}");
        };
        for what in ["memory: ", "ephemeral-storage: "] {
            assert!(limits.contains(what), "{limits}");
        }
        assert_eq!(values(job, "readOnlyRootFilesystem"), ["true"]);
    }
}

/// To each other, and to the DNS.
#[test]
fn its_pods_reach_nobody_else() {
    let policies = documents("NetworkPolicy");
    let [policy] = policies[..] else {
        panic!("{policies:?}");
    };
    assert_eq!(values(policy, "policyTypes"), ["[Ingress, Egress]"]);
    let (_, egress) = policy.split_once("  egress:\n").expect("there is one");
    let own = "{app.kubernetes.io/name: flitcast}";
    let dns = "{kubernetes.io/metadata.name: kube-system} {k8s-app: kube-dns}";
    let labels = values(egress, "matchLabels").join(" ");
    assert_eq!(labels, format!("{own} {dns}"));
    assert_eq!(egress.matches("- to:\n").count(), 2);
    assert_eq!(egress.matches("port: 53}").count(), 2);
}
