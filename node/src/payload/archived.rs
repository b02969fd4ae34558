//! Attributes of entries that only an archive keeps: owners and extended attributes.
//!
//! The extended attributes are the users' own, the capabilities of a program, and ACLs; others describe
//! their file system or host. Attributes that cannot be set are counted, without an error: only root may
//! change owners, and a file system may lack extended attributes.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use bytes::Bytes;
use flitcast_proto::Unkept;
use flitcast_proto::wire::pb;
use rustix::fs::{
    AtFlags, Gid, Mode, Stat, Uid, XattrFlags, chownat, fchmod, fchown, fgetxattr, flistxattr,
    fremovexattr, fsetxattr,
};
use rustix::io::{self, Errno};

use super::error::Refusal;

/// Maximum length of the names and values of an entry's extended attributes in bytes. Most file systems
/// have room for 4 KiB; the kernel permits 64 KiB for each value.
pub(super) const EXTENDED_BYTES_MAX: usize = 128 << 10;

/// Maximum number of extended attributes of an entry.
const EXTENDED_MAX: usize = 1024;

/// Maximum length of the encoding of [`Archived`] in bytes: the fields of an attribute take less than 16.
pub(super) const ARCHIVED_BYTES_MAX: usize = EXTENDED_BYTES_MAX + (EXTENDED_MAX + 1) * 16;

const CAPABILITY: &[u8] = b"security.capability";
const ACCESS_ACL: &[u8] = b"system.posix_acl_access";
const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

/// Attributes of an entry that only an archive keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Archived {
    uid: u32,
    gid: u32,
    /// Names and values, by name.
    extended: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Archived {
    /// Returns the attributes of an entry; `file` is absent for a symlink, whose extended attributes are
    /// not kept.
    pub fn of(found: &Stat, file: Option<BorrowedFd<'_>>) -> io::Result<Archived> {
        Ok(Archived {
            uid: found.st_uid,
            gid: found.st_gid,
            extended: file.map_or(Ok(Vec::new()), read_extended)?,
        })
    }

    pub fn is_extended(&self) -> bool {
        !self.extended.is_empty()
    }

    /// Checks the attributes, at the sender as at the receiver.
    pub fn check(&self) -> Result<(), Refusal> {
        let names = self.extended.iter().map(|(name, _)| name);
        let bytes = |(name, value): &(Vec<u8>, Vec<u8>)| name.len() + value.len();
        // This user is the one that `chown` leaves as it is.
        if [self.uid, self.gid].contains(&u32::MAX) {
            return Err(Refusal::Malformed("an owner that is not one"));
        }
        if !names.clone().all(|name| is_kept(name)) || !names.is_sorted_by(|a, b| a < b) {
            return Err(Refusal::Malformed("extended attributes that are not sent"));
        }
        let is_long = self.extended.iter().map(bytes).sum::<usize>() > EXTENDED_BYTES_MAX;
        match is_long || self.extended.len() > EXTENDED_MAX {
            true => Err(Refusal::ExtendedTooLong),
            false => Ok(()),
        }
    }

    /// Sets the attributes of a new file or directory, in a lent folder without capabilities; returns which
    /// are not set. Setting an owner clears mode bits and capabilities, so it comes first.
    pub fn set(&self, of: BorrowedFd<'_>, is_lent: bool) -> Unkept {
        let chown = |uid, gid| fchown(of, uid, gid);
        let owners = self.own(chown);
        let fails = |(name, value): &(Vec<u8>, Vec<u8>)| {
            let is_refused = is_lent && name == CAPABILITY;
            is_refused || fsetxattr(of, &name[..], value, XattrFlags::empty()).is_err()
        };
        // All are tried.
        let failed = self.extended.iter().filter(|one| fails(one)).count();
        Unkept {
            owners,
            extended: u64::from(failed > 0),
            ..Unkept::default()
        }
    }

    /// Sets the owner of a symlink; returns what could not be set.
    pub fn set_symlink(&self, here: BorrowedFd<'_>, name: &Path) -> Unkept {
        let chown = |uid, gid| chownat(here, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW);
        let owners = self.own(chown);
        Unkept {
            owners,
            ..Unkept::default()
        }
    }

    /// Sets owner and group, or the group alone, which a member may; returns 1 if one is not set.
    fn own(&self, chown: impl Fn(Option<Uid>, Option<Gid>) -> io::Result<()>) -> u64 {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        let is_set = chown(Some(uid), Some(gid)).is_ok();
        if !is_set {
            let _ = chown(None, Some(gid));
        }
        u64::from(!is_set)
    }

    /// Returns whether an existing file has these attributes. Its owner is not compared by a process that
    /// could not set another one.
    pub fn are_of(&self, found: &Stat, file: BorrowedFd<'_>, sets_owners: bool) -> bool {
        let is_owned = found.st_uid == self.uid && found.st_gid == self.gid;
        let extended = || read_extended(file).is_ok_and(|extended| extended == self.extended);
        (is_owned || !sets_owners) && extended()
    }

    pub fn to_wire(&self) -> pb::Archived {
        let one = |(name, value): &(Vec<u8>, Vec<u8>)| pb::ExtendedAttribute {
            name: Bytes::copy_from_slice(name),
            value: Bytes::copy_from_slice(value),
        };
        pb::Archived {
            uid: self.uid,
            gid: self.gid,
            extended: self.extended.iter().map(one).collect(),
        }
    }

    pub fn of_wire(wire: pb::Archived) -> Archived {
        let all = wire.extended.into_iter();
        Archived {
            uid: wire.uid,
            gid: wire.gid,
            extended: all.map(|it| (it.name.into(), it.value.into())).collect(),
        }
    }
}

/// Returns the extended attributes that an archive keeps, by name; none if the file system has none.
fn read_extended(file: BorrowedFd<'_>) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let listed = read_whole(|buffer| flistxattr(file, buffer));
    let names = match listed {
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Vec::new()),
        names => names?,
    };
    let kept = names.split(|byte| *byte == 0).filter(|name| is_kept(name));
    let with_value = |name: &[u8]| match read_whole(|buffer| fgetxattr(file, name, buffer)) {
        // Removed since it was listed.
        Err(Errno::NODATA) => None,
        value => Some(value.map(|value| (name.to_vec(), value))),
    };
    let mut extended = kept
        .filter_map(with_value)
        .collect::<io::Result<Vec<_>>>()?;
    extended.sort_unstable();
    Ok(extended)
}

/// Calls `fill` with buffers of growing length until one is long enough.
fn read_whole(fill: impl Fn(&mut [u8]) -> io::Result<usize>) -> io::Result<Vec<u8>> {
    // Nearly all names and values are shorter.
    let mut buffer = vec![0; 512];
    loop {
        match fill(&mut buffer) {
            Err(Errno::RANGE) if buffer.len() < EXTENDED_BYTES_MAX => {
                buffer.resize(EXTENDED_BYTES_MAX, 0);
            }
            filled => {
                buffer.truncate(filled?);
                return Ok(buffer);
            }
        }
    }
}

fn is_kept(name: &[u8]) -> bool {
    let is_plain = !name.contains(&0);
    is_plain && (name.starts_with(b"user.") || name == CAPABILITY || is_acl(name))
}

fn is_acl(name: &[u8]) -> bool {
    [ACCESS_ACL, DEFAULT_ACL].contains(&name)
}

/// Removes the ACLs that an entry has from the directory it is in, or that a directory has for the entries
/// below, and gives the entry this mode while it is written.
pub(super) fn forget_inherited(made: impl AsFd, mode: Mode) -> std::io::Result<()> {
    for name in [ACCESS_ACL, DEFAULT_ACL] {
        // It has none, or its file system has none.
        let _ = fremovexattr(made.as_fd(), name);
    }
    Ok(fchmod(made, mode)?)
}
