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

/// Returns one list of the hosts of groups, with or without `@` before each, and of `hosts`, without those
/// of `excluded`.
pub fn joined(groups: Option<&str>, hosts: Option<&str>, excluded: Option<&str>) -> String {
    let groups = groups.iter().flat_map(|groups| groups.split([',', ' ']));
    let groups = groups.map(|group| match group.starts_with('@') || group.is_empty() {
        true => group.to_owned(),
        false => format!("@{group}"),
    });
    let (hosts, more) = hosts.map_or(("", None), |hosts| match hosts.split_once('!') {
        Some((hosts, excluded)) => (hosts, Some(excluded)),
        None => (hosts, None),
    });
    let wanted: Vec<String> = groups
        .chain([hosts.to_owned()])
        .filter(|list| !list.is_empty())
        .collect();
    let excluded: Vec<&str> = more.into_iter().chain(excluded).collect();
    match excluded.is_empty() {
        true => wanted.join(","),
        false => format!("{}!{}", wanted.join(","), excluded.join(",")),
    }
}

/// A name without its last number: the text before and behind it, and its number of digits.
type Numbered<'a> = (&'a str, &'a str, usize);

/// Returns a list of hosts with ranges of numbers in brackets, as in `node[01-03,07],login`.
pub fn folded(hosts: &[&str]) -> String {
    let mut all: Vec<(Numbered<'_>, Vec<[u64; 2]>)> = Vec::new();
    for host in hosts {
        let (key, number) = parts(host);
        match (all.last_mut(), number) {
            (Some((last, ranges)), Some(number)) if *last == key => match ranges.last_mut() {
                Some(range) if range[1].checked_add(1) == Some(number) => range[1] = number,
                _ => ranges.push([number; 2]),
            },
            (_, number) => all.push((key, number.map(|number| [number; 2]).into_iter().collect())),
        }
    }
    let item = |((before, behind, width), ranges): &(Numbered<'_>, Vec<[u64; 2]>)| {
        let width = *width;
        let range = |[first, last]: &[u64; 2]| match first == last {
            true => format!("{first:0width$}"),
            false => format!("{first:0width$}-{last:0width$}"),
        };
        let text = ranges.iter().map(range).collect::<Vec<_>>().join(",");
        match text.contains(['-', ',']) {
            true => format!("{before}[{text}]{behind}"),
            false => format!("{before}{text}{behind}"),
        }
    };
    all.iter().map(item).collect::<Vec<_>>().join(",")
}

/// Splits a name at its last number, and returns its value.
fn parts(host: &str) -> (Numbered<'_>, Option<u64>) {
    let is_digit = |char: char| char.is_ascii_digit();
    let end = host.rfind(is_digit).map_or(0, |last| last + 1);
    let begin = host[..end].trim_end_matches(is_digit).len();
    match host[begin..end].parse() {
        Ok(number) => ((&host[..begin], &host[end..], end - begin), Some(number)),
        Err(_) => ((host, "", 0), None),
    }
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
    fn lists_are_joined() {
        let of = |groups, hosts, excluded| joined(groups, hosts, excluded);
        assert_eq!(of(Some("lab,@left"), None, None), "@lab,@left");
        assert_eq!(of(Some("@lab"), Some("a,b"), Some("b")), "@lab,a,b!b");
        assert_eq!(of(None, Some("n[1-4]!n2"), Some("n3")), "n[1-4]!n2,n3");
    }

    #[test]
    fn numbers_are_folded() {
        for list in [
            "a",
            "node[01-03,07],login",
            "n9,n[10-11]",
            "r1n[1-2]x",
            "10.0.0.[1-3]",
            "a,a",
        ] {
            let all = names_of(list);
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            assert_eq!(folded(&all), list);
        }
    }

    /// Returns the hosts of a list, also those that are there twice.
    fn names_of(list: &str) -> Vec<String> {
        let items = items(list).unwrap();
        items
            .into_iter()
            .flat_map(|item| names(item).unwrap())
            .collect()
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
