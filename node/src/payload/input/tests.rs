use super::*;
use std::os::unix::fs::symlink;

fn with_root(root: u32, pes: usize) -> Others<'static> {
    let root = Some(PeId(root));
    Others {
        root,
        ..Others::all(pes)
    }
}

fn among(pes: usize) -> Others<'static> {
    with_root(0, pes)
}

fn messages(faults: &[PayloadError]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

/// Creates files with these paths below a new directory.
fn directory(paths: &[&str]) -> io::Result<tempfile::TempDir> {
    let dir = tempfile::tempdir()?;
    for path in paths.iter().map(|path| dir.path().join(path)) {
        fs::create_dir_all(path.parent().expect("it has one"))?;
        fs::write(path, "")?;
    }
    Ok(dir)
}

/// Returns the indices of the messages that there are.
fn given(contents: &[Option<Content>]) -> Vec<usize> {
    (0..contents.len())
        .filter(|i| contents[*i].is_some())
        .collect()
}

#[test]
fn all_faults_are_reported_at_once() -> io::Result<()> {
    let dir = directory(&[".hidden", "foo", "p", "p+1", "p0", "p01", "p8", "p1"])?;
    symlink("p1", dir.path().join("p2"))?;
    let faults = read_input_dir(dir.path(), among(8)).expect_err("most names are no PEs");
    let dir = dir.path().display();
    let no_pe = |name| format!("`{name}` names no PE; this tree has p1..p7");
    let expected = [
        format!("`{dir}` has 9 entries for 7 PEs; this tree has p1..p7"),
        no_pe(".hidden"),
        no_pe("foo"),
        no_pe("p"),
        no_pe("p+1"),
        "`p0` is the root of the tree, which has no message; this tree has p1..p7".to_owned(),
        no_pe("p01") + "; did you mean p1?",
        format!(
            "`{dir}/p2` is refused: a message cannot be a symlink itself; \
             put what it points to in its place"
        ),
        no_pe("p8"),
    ];
    assert_eq!(messages(&faults), expected);
    Ok(())
}

#[test]
fn entries_become_messages_by_name() -> io::Result<()> {
    let dir = directory(&["p0", "p3"])?;
    let path = dir.path();
    fs::create_dir(path.join("p12"))?;
    let contents = read_input_dir(path, with_root(2, 13)).expect("all names are PEs");
    assert_eq!((contents.len(), given(&contents)), (13, vec![0, 3, 12]));
    assert_eq!(contents[3], Some(Content::Entry(path.join("p3"))));
    assert_eq!(contents[12], Some(Content::Entry(path.join("p12"))));
    let contents = read_input_dir(path, Others::all(13)).expect("all names are PEs");
    assert_eq!(given(&contents), [0, 3, 12]);

    // Another root has no message, and P0 has one.
    fs::remove_dir(path.join("p12"))?;
    let dealt = deal(path, &Selection::default(), with_root(2, 4)).expect("it can be dealt");
    assert_eq!(given(&dealt), [0, 1]);
    let messages_for =
        |others| messages(&read_input_dir(path, others).expect_err("one is too much"));
    let end = "is the root of the tree, which has no message; this tree has";
    assert_eq!(
        messages_for(with_root(3, 4)),
        [format!("`p3` {end} p0..p2")]
    );
    fs::rename(path.join("p3"), path.join("p2"))?;
    assert_eq!(
        messages_for(with_root(2, 4)),
        [format!("`p2` {end} p0..p3 but p2")]
    );
    assert_eq!(
        messages_for(Others::all(2)),
        ["`p2` names no PE; this tree has p0..p1"]
    );
    let missing = read_input_dir(Path::new("/nowhere/at/all"), among(8));
    let why = "cannot read the directory `/nowhere/at/all`: \
               No such file or directory (os error 2)";
    assert_eq!(messages(&missing.expect_err("it is missing")), [why]);
    Ok(())
}

#[test]
fn every_pe_may_have_an_entry_for_each_other_one() -> io::Result<()> {
    let dir = directory(&["p0/p1", "p2/p0", "p2/p1"])?;
    let contents = pieces_input(dir.path(), Others::all(3)).expect("all names are PEs");
    assert_eq!((contents.len(), given(&contents)), (9, vec![1, 6, 7]));
    let entry = Content::Entry(dir.path().join("p2/p0"));
    assert_eq!(contents[6], Some(entry));
    let row =
        pieces_of(&dir.path().join("p2"), PeId(2), Others::all(3)).expect("all names are PEs");
    assert_eq!(row, contents[6..]);
    Ok(())
}

#[test]
fn all_faults_of_all_folders_are_reported_at_once() -> io::Result<()> {
    let dir = directory(&["p9/p1", "p1/p1", "p1/p9", "p2/x", "p2/p0", "y/z", "p0"])?;
    let faults = pieces_input(dir.path(), Others::all(3)).expect_err("most names are no PEs");
    let no_pe = |name| format!("`{name}` names no PE; this tree has p0..p2");
    let expected = [
        no_pe("p9"),
        no_pe("y"),
        format!(
            "`{}/p0` is not a folder; make it a folder with an entry p1, p2, .. for each PE \
             that P0 has a message for",
            dir.path().display()
        ),
        "`p1/p1`: a PE has no message for itself".to_owned(),
        no_pe("p1/p9"),
        no_pe("p2/x"),
    ];
    assert_eq!(messages(&faults)[1..], expected);
    Ok(())
}

/// P0 is named like its number, P1 like that of P2, and P3 like a path.
#[test]
fn entries_become_messages_by_names() -> io::Result<()> {
    let names = ["p0", "p2", "gamma", "..", "epsilon"].map(str::to_owned);
    let all = Others::all(5).named(&names);
    let dir = directory(&["p0", "gamma", "p1", "epsilon/p0", "epsilon/gamma"])?;
    let path = dir.path();
    let contents = read_input_dir(path, all).expect("all names are PEs");
    assert_eq!(given(&contents), [0, 1, 2, 4]);
    assert_eq!(contents[2], Some(Content::Entry(path.join("gamma"))));
    let entry = |pe| all.entry(path, PeId(pe)).map_err(|fault| fault.to_string());
    let expected = ["p0", "p1", "gamma", "p3", "epsilon"].map(|name| Ok(path.join(name)));
    assert_eq!([0, 1, 2, 3, 4].map(entry), expected);
    let row = pieces_of(&path.join("epsilon"), PeId(4), all).expect("all names are PEs");
    assert_eq!(given(&row), [0, 2]);

    fs::write(path.join("p2"), "")?;
    fs::write(path.join("delta"), "")?;
    let dir = path.display();
    let too_many =
        format!("`{dir}` has 6 entries for 4 PEs; this tree has p1..p4 (p2, gamma, .., epsilon)");
    let twice =
        format!("`{dir}/gamma` and `{dir}/p2` are both the entry of P2; remove one of them");
    let expected = [
        &too_many,
        "`delta` names no PE; this tree has p1..p4 (p2, gamma, .., epsilon)",
        "`p0` is the root of the tree, which has no message; \
         this tree has p1..p4 (p2, gamma, .., epsilon)",
        &twice,
    ];
    let faults = read_input_dir(path, among(5).named(&names)).expect_err("three are wrong");
    assert_eq!(messages(&faults), expected);
    assert_eq!(entry(2).map_err(|_| ()), Err(()));
    let many: Vec<String> = (0..9).map(|pe| format!("host{pe}")).collect();
    let shown = among(9).named(&many).to_string();
    let expected = "p1..p8 (host1, host2, host3, host4, host5, host6 and 2 more)";
    assert_eq!(shown, format!("this tree has {expected}"));
    Ok(())
}

#[test]
fn dealing_balances_bytes_then_files() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    fs::create_dir_all(dir.path().join("d/empty"))?;
    for (name, bytes) in [
        ("a", 5),
        ("b", 3),
        ("d/c", 3),
        ("d/e", 0),
        ("f", 0),
        ("g", 0),
    ] {
        fs::write(dir.path().join(name), vec![0; bytes])?;
    }
    symlink("a", dir.path().join("h"))?;
    let contents = deal(dir.path(), &Selection::default(), among(4)).expect("it can be dealt");
    let files = |names: &[&str]| {
        Some(Content::Dealt {
            with_root: false,
            base: dir.path().to_owned(),
            files: names.iter().map(PathBuf::from).collect(),
        })
    };
    // b and d/c have 3 bytes each, so the empty files and the empty folder alternate between
    // them.
    let [one, two, three] = [
        &["a"][..],
        &["b", "d/e", "f", "h"],
        &["d/c", "d/empty", "g"],
    ];
    assert_eq!(contents, [None, files(one), files(two), files(three)]);
    Ok(())
}
