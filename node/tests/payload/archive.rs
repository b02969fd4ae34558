//! Messages with all attributes of their files: `--archive`.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flitcast_node::payload::{
    Content, Listing, Outgoing, PayloadError, Target, Unpacker, prefix_bytes,
};
use flitcast_proto::Update;
use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};

use crate::support::{
    NONCE, Scratch, UNDERTAKING, describe, names, read_in, rest, rich_tree, target, touch, write_in,
};

/// Returns an ACL as the kernel encodes it: the owner reads and writes, this user and the group read.
fn acl() -> Vec<u8> {
    let user = rustix::process::geteuid().as_raw();
    let entries = [
        (1, 6, !0),
        (2, 4, user),
        (4, 4, !0),
        (16, 4, !0),
        (32, 0, !0),
    ];
    let mut acl = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        acl.extend(u16::to_le_bytes(tag));
        acl.extend(u16::to_le_bytes(permissions));
        acl.extend(u32::to_le_bytes(id));
    }
    acl
}

fn archive(destination: &Path, run: u64) -> Target {
    Target {
        run,
        replace: true,
        is_kept: true,
        is_archive: true,
        ..target(destination)
    }
}

fn set(path: &Path, name: &str, value: &[u8]) -> io::Result<()> {
    Ok(fsetxattr(
        File::open(path)?,
        name,
        value,
        XattrFlags::empty(),
    )?)
}

/// Adds hard links, extended attributes, ACLs and special bits to a tree of files.
fn source() -> io::Result<Scratch> {
    let dir = Scratch::new()?;
    let root = dir.join("source");
    rich_tree(&root)?;
    for (name, first) in [("deep/er/second", "deep/run"), ("zoo/third", "deep/run")] {
        fs::create_dir_all(root.join("zoo"))?;
        fs::hard_link(root.join(first), root.join(name))?;
    }
    touch(
        &root.join("outside"),
        b"another name is elsewhere",
        0o644,
        3,
        3,
    )?;
    fs::hard_link(root.join("outside"), dir.join("elsewhere"))?;
    touch(&root.join("zoo/own"), b"attributes", 0o640, 4, 4)?;
    set(&root.join("zoo/own"), "user.note", b"a value")?;
    set(&root.join("zoo/own"), "user.empty", b"")?;
    set(&root.join("zoo/own"), "system.posix_acl_access", &acl())?;
    set(&root.join("zoo"), "user.folder", &[7; 1000])?;
    // It does not have what its folder gives to later files.
    touch(&root.join("zoo/plain"), b"earlier", 0o644, 6, 6)?;
    set(&root.join("zoo"), "system.posix_acl_default", &acl())?;
    touch(&root.join("zoo/program"), b"#!/bin/sh", 0o755, 5, 5)?;
    fs::set_permissions(root.join("zoo/program"), Permissions::from_mode(0o4751))?;
    fs::set_permissions(root.join("deep"), Permissions::from_mode(0o2755))?;
    symlink("own", root.join("zoo/link"))?;
    Ok(dir)
}

type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

/// Returns the extended attributes of a file or folder.
fn attributes(path: &Path) -> io::Result<Attributes> {
    let (file, mut list) = (File::open(path)?, vec![0; 1 << 16]);
    let bytes = flistxattr(&file, &mut list)?;
    let names = list[..bytes].split(|byte| *byte == 0);
    let value = |name: &[u8]| {
        let mut value = vec![0; 1 << 16];
        let bytes = fgetxattr(&file, name, &mut value)?;
        value.truncate(bytes);
        Ok((name.to_vec(), value))
    };
    let all = names.filter(|name| !name.is_empty()).map(value);
    let mut all = all.collect::<io::Result<Attributes>>()?;
    all.sort();
    Ok(all)
}

/// Returns the paths of each file with several names below `root`, and the extended attributes and owners
/// of all entries.
type Details = (Vec<Vec<PathBuf>>, BTreeMap<PathBuf, (Attributes, u32, u32)>);

fn details(root: &Path) -> io::Result<Details> {
    let (mut links, mut all) = (BTreeMap::<u64, Vec<PathBuf>>::new(), BTreeMap::new());
    for entry in describe(root)? {
        let path = root.join(&entry.path);
        let found = fs::symlink_metadata(&path)?;
        if found.is_file() && found.nlink() > 1 {
            links
                .entry(found.ino())
                .or_default()
                .push(entry.path.clone());
        }
        let extended = match found.is_symlink() {
            true => Vec::new(),
            false => attributes(&path)?,
        };
        all.insert(entry.path, (extended, found.uid(), found.gid()));
    }
    let several = links.into_values().filter(|paths| paths.len() > 1);
    let mut several: Vec<_> = several.collect();
    several.sort();
    Ok((several, all))
}

#[track_caller]
fn assert_kept(source: &Path, arrived: &Path) -> io::Result<()> {
    assert_eq!(describe(source)?, describe(arrived)?);
    assert_eq!(details(source)?, details(arrived)?);
    Ok(())
}

/// Returns the message of a source.
fn message(source: &Path) -> Vec<u8> {
    let content = Content::Entry(source.to_owned());
    let measured = Outgoing::measure(content, true, &|| {}).expect("all is readable");
    read_in(&measured, &[4096])
}

/// The message is cut off anywhere, also between the names of a file, and is continued.
#[test]
fn an_archive_is_continued() -> io::Result<()> {
    let dir = source()?;
    let (source, out) = (dir.join("source"), dir.join("out"));
    let message = message(&source);
    let (links, _) = details(&source)?;
    let names_of_one = ["deep/er/second", "deep/run", "zoo/third"];
    assert_eq!(links, [names_of_one.map(PathBuf::from)]);
    fs::create_dir(&out)?;
    // Entries of the message do not inherit it.
    set(&out, "system.posix_acl_default", &acl())?;
    let destination = out.join("p1");
    for cut in (0..message.len()).step_by(149) {
        let first = Unpacker::create(archive(&destination, NONCE), Arc::default());
        let mut first = first.expect("the place is free");
        first.write(&message[..cut]).expect("it is a good message");
        drop(first);
        let there = prefix_bytes(destination.clone(), UNDERTAKING, true);
        let mut behind = vec![there];
        // The source may have less in common.
        behind.extend(there.checked_sub(300));
        let behind = behind[cut % behind.len()];
        let next = archive(&destination, NONCE + 1);
        let unpacker = match behind {
            0 => Unpacker::create(next, Arc::default()),
            _ => Unpacker::resume(next, behind, Arc::default()).map(|(unpacker, _)| unpacker),
        };
        let unpacker = unpacker.expect("nothing else is there");
        let rest = &message[behind as usize..];
        write_in(unpacker, rest, &[77]).unwrap_or_else(|error| panic!("{error} after {cut} bytes"));
        assert_kept(&source, &destination)?;
        assert_eq!(names(&out)?, ["p1"]);
        flitcast_node::payload::remove(&destination)?;
    }
    Ok(())
}

/// Delivers what `destination` lacks of `source`, and returns the number of files that are not sent.
fn update(source: &Path, destination: &Path) -> Result<u64, PayloadError> {
    let (message, files) = rest(source, destination, Update::ByTime, true)?;
    let target = Target {
        is_kept: false,
        is_update: true,
        ..archive(destination, NONCE)
    };
    write_in(Unpacker::create(target, Arc::default())?, &message, &[77])?;
    let content = Content::Entry(source.to_owned());
    let listing = Listing::of(&content, Update::ByTime, true, &|| {})?;
    let there = Listing::at(destination, Update::ByTime, (true, false), &|| {});
    assert_eq!(there.map(|there| there.digest), Some(listing.digest));
    Ok(files)
}

/// Attributes that change are set on a copy, and names that are separate files now are not linked.
#[test]
fn an_update_keeps_all_attributes() -> io::Result<()> {
    let dir = source()?;
    let (source, out) = (dir.join("source"), dir.join("out"));
    fs::create_dir(&out)?;
    let (destination, copied) = (out.join("p1"), "it is a good message");
    assert_eq!(update(&source, &destination).expect(copied), 0);
    set(&source.join("zoo/own"), "user.note", b"another value")?;
    let (first, second) = (source.join("deep/run"), source.join("deep/er/second"));
    fs::remove_file(&second)?;
    fs::copy(&first, &second)?;
    File::open(&second)?.set_modified(fs::metadata(&first)?.modified()?)?;
    fs::hard_link(source.join("empty"), source.join("zoo/empty"))?;
    let before = fs::metadata(destination.join("zoo/program"))?.ino();
    assert!(update(&source, &destination).expect(copied) > 5);
    assert_kept(&source, &destination)?;
    assert_eq!(fs::metadata(destination.join("zoo/program"))?.ino(), before);
    Ok(())
}
