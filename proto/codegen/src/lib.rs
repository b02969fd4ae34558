//! Generator of `proto/src/wire/generated.rs`, which is committed, so that building Flitcast needs no
//! protobuf compiler. The test of this crate fails if the file does not match `proto/flitcast.proto`;
//! `FLITCAST_BLESS=1 cargo test -p flitcast-codegen` rewrites it. It is a separate crate so that it
//! builds even if `flitcast-proto` does not.

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Returns generated code without the names of enum values, which nothing uses and prost-build has no
    /// setting for: the `impl` of each enum.
    fn without_names(code: &str) -> String {
        let mut end = None;
        let mut kept = String::new();
        for line in code.lines() {
            let (indent, is_impl) = match line.find("impl ") {
                Some(at) => (&line[..at], line[..at].trim().is_empty()),
                None => ("", false),
            };
            if is_impl {
                end = Some(format!("{indent}}}"));
            } else if end.is_none() {
                kept.extend([line, "\n"]);
            }
            end = end.filter(|end| end != line);
        }
        kept
    }

    #[test]
    fn generated_code_matches_the_proto_file() {
        let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let descriptors = protox::compile([proto.join("flitcast.proto")], [&proto]).unwrap();
        let out = tempfile::tempdir().unwrap();
        prost_build::Config::new()
            .bytes(["."])
            // They are in `flitcast.proto`.
            .disable_comments(["."])
            .out_dir(out.path())
            .compile_fds(descriptors)
            .unwrap();
        let fresh = std::fs::read_to_string(out.path().join("flitcast.v1.rs")).unwrap();
        let fresh = without_names(&fresh);
        let committed = proto.join("src/wire/generated.rs");
        if std::env::var_os("FLITCAST_BLESS").is_some() {
            std::fs::write(&committed, &fresh).unwrap();
        }
        assert!(
            std::fs::read_to_string(&committed).unwrap() == fresh,
            "generated.rs is stale: FLITCAST_BLESS=1 cargo test -p flitcast-codegen"
        );
    }
}
