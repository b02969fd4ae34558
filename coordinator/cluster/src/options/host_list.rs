//! Lists of hosts, as in `node[01-64,70],login`: names in which brackets contain numbers and ranges.
//!
//! `!LIST` at the end excludes hosts, and `@GROUP` stands for the hosts of a group. Groups are lines
//! `GROUP: HOSTS` of ClusterShell's files.

use std::path::PathBuf;

use anyhow::{anyhow, bail, ensure};
use flitcast_node::system::regular;

/// Maximum number of hosts.
const MOST: usize = 4095;
/// Maximum bytes of a file with groups.
const LONGEST_FILE: u64 = 1 << 20;
/// Groups within groups.
const DEEPEST: usize = 8;

/// Returns the hosts of a list in its order, each once.
///
/// # Errors
///
/// Returns an error if the list is malformed, names no host, or too many.
pub fn hosts(list: &str) -> anyhow::Result<Vec<String>> {
    let (wanted, excluded) = list.split_once('!').unwrap_or((list, ""));
    let mut hosts = expanded(wanted, DEEPEST)?;
    let excluded = match excluded.is_empty() {
        true => Vec::new(),
        false => expanded(excluded, DEEPEST)?,
    };
    hosts.retain(|host| !excluded.contains(host));
    ensure!(!hosts.is_empty(), "`{list}` names no host");
    Ok(hosts)
}

fn expanded(list: &str, depth: usize) -> anyhow::Result<Vec<String>> {
    let mut hosts: Vec<String> = Vec::new();
    for item in items(list)? {
        let found = match item.strip_prefix('@') {
            Some(group) if depth > 0 => expanded(&group_named(group)?, depth - 1)?,
            Some(group) => bail!("@{group}: groups are nested too deeply"),
            None => names(item)?,
        };
        hosts.extend(found);
        ensure!(hosts.len() <= MOST, "`{list}` names more than {MOST} hosts");
    }
    let mut distinct = Vec::new();
    for host in hosts {
        if !distinct.contains(&host) {
            distinct.push(host);
        }
    }
    Ok(distinct)
}

/// Splits a list at the commas outside of brackets.
fn items(list: &str) -> anyhow::Result<Vec<&str>> {
    let (mut items, mut begin, mut is_inside) = (Vec::new(), 0, false);
    for (at, char) in list.char_indices() {
        match char {
            '[' if is_inside => bail!("`{list}`: a bracket inside of brackets"),
            '[' => is_inside = true,
            ']' if !is_inside => bail!("`{list}`: a bracket is not opened"),
            ']' => is_inside = false,
            ',' | ' ' if !is_inside => {
                items.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    ensure!(!is_inside, "`{list}`: a bracket is not closed");
    items.push(&list[begin..]);
    items.retain(|item| !item.is_empty());
    Ok(items)
}

/// Returns the names that an item stands for: the first brackets vary slowest.
fn names(item: &str) -> anyhow::Result<Vec<String>> {
    let Some((before, rest)) = item.split_once('[') else {
        return Ok(vec![item.to_owned()]);
    };
    let (ranges, after) = rest.split_once(']').unwrap_or((rest, ""));
    let (ends, mut all) = (names(after)?, Vec::new());
    for range in ranges.split(',') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse::<u32>().ok().filter(|_| digits);
            number.ok_or_else(|| {
                anyhow!("`{item}`: write numbers and ranges in brackets, as in node[01-64,70]")
            })
        };
        let (first, last) = (number(from)?, number(to)?);
        ensure!(first <= last, "`{item}`: {range} ends before it begins");
        let count = (last - first) as usize + 1;
        let is_too_much = count.saturating_mul(ends.len()) > MOST;
        ensure!(!is_too_much, "`{item}` names more than {MOST} hosts");
        let width = from.len();
        for number in first..=last {
            let name = |end: &String| format!("{before}{number:0width$}{end}");
            all.extend(ends.iter().map(name));
        }
    }
    Ok(all)
}

/// The files of groups, the user's first.
fn files() -> impl Iterator<Item = PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let of_user = home.map(|home| home.join(".config/clustershell/groups.d/local.cfg"));
    let of_all = [
        "/etc/clustershell/groups.d/local.cfg",
        "/etc/clustershell/groups",
    ];
    of_user.into_iter().chain(of_all.map(PathBuf::from))
}

/// Returns the hosts of a group as a list.
fn group_named(group: &str) -> anyhow::Result<String> {
    let all: Vec<PathBuf> = files().collect();
    for file in &all {
        // A file that is not there has no group.
        let text = regular::read_text(file, LONGEST_FILE).unwrap_or_default();
        if let Some(hosts) = group_in(&text, group) {
            return Ok(hosts.to_owned());
        }
    }
    let files: Vec<String> = all.iter().map(|file| file.display().to_string()).collect();
    bail!("there is no group {group} in {}", files.join(", "))
}

fn group_in<'a>(text: &'a str, group: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(name, _)| name.trim() == group);
    found.map(|(_, hosts)| hosts.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_stand_for_numbers() {
        for (list, expected) in [
            ("a", "a"),
            ("a,b a", "a b"),
            ("n[1-3,7]", "n1 n2 n3 n7"),
            ("n[08-11]x", "n08x n09x n10x n11x"),
            ("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"),
            ("me@10.0.0.[1-2],b", "me@10.0.0.1 me@10.0.0.2 b"),
            ("n[1-4],a!n[2-3],b", "n1 n4 a"),
        ] {
            let expected: Vec<&str> = expected.split(' ').collect();
            assert_eq!(hosts(list).unwrap(), expected, "{list}");
        }
    }

    #[test]
    fn a_malformed_list_is_refused() {
        for (list, why) in [
            ("", "names no host"),
            ("a!a", "names no host"),
            ("n[1-2", "is not closed"),
            ("n1-2]", "is not opened"),
            ("n[[1]]", "inside of brackets"),
            ("n[a-b]", "write numbers and ranges"),
            ("n[1-]", "write numbers and ranges"),
            ("n[3-1]", "ends before it begins"),
            ("n[1-99999]", "more than 4095 hosts"),
            ("n[1-100][1-100]", "more than 4095 hosts"),
            ("@flitcast-no-such-group", "there is no group"),
        ] {
            let refused = hosts(list).unwrap_err().to_string();
            assert!(refused.contains(why), "{list}: {refused}");
        }
    }

    #[test]
    fn groups_are_lines_of_a_file() {
        let text = "# racks\nleft: n[1-4]\nall: @left,n9\n";
        assert_eq!(group_in(text, "left"), Some("n[1-4]"));
        assert_eq!(group_in(text, "all"), Some("@left,n9"));
        assert_eq!(group_in(text, "racks"), None);
    }
}
