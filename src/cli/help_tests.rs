use super::*;

#[test]
fn is_as_wide_as_a_terminal_of_today() {
    for line in [PROGRAM, &run(), &check(), &rbac()]
        .iter()
        .flat_map(|help| help.lines())
    {
        assert!(line.len() <= WIDTH, "{line}");
    }
}

/// The name of the group that begins with this line.
fn head(line: &str) -> Option<&str> {
    line.strip_suffix(':').filter(|head| !head.starts_with(' '))
}

#[test]
fn has_its_groups_in_the_order_of_need() {
    let help = run();
    let heads: Vec<&str> = help.lines().filter_map(head).collect();
    let expected = [
        "Connection",
        "Identity",
        "Sync",
        "Safety",
        "Bounds",
        "High availability",
        "Monitoring",
        "Logging",
        "Others",
        "Environment",
        "Example",
    ];
    assert_eq!(heads, expected);
    assert!(help.lines().next().is_some_and(|usage| usage.len() < 80));
}

#[test]
fn says_what_a_flag_takes_and_what_its_type_says() {
    let help = run();
    for lines in [
        "\n  --burst NUMBER              requests that may be sent at once to each side (default: 20)\n",
        "\n  --former-sync-target-uid UID\n                              UID that",
        "example.org\n                              (repeatable)\n",
        "any ending;\n                              repeatable)\n",
        "\n  --leader-elect              sync only",
        " active\n                              (also =true, =false)\n",
    ] {
        assert!(help.contains(lines), "{lines}");
    }
}

#[test]
fn each_flag_stands_in_one_group() {
    let help = run();
    for flag in args::flags() {
        let (mut group, mut found) = (None, Vec::new());
        for line in help.lines() {
            group = head(line).or(group);
            if line.split_whitespace().next() == Some(flag.long) {
                found.push(group);
            }
        }
        let is_group = |name| GROUPS.iter().any(|(group, _)| *group == name);
        assert!(
            matches!(found[..], [Some(name)] if is_group(name)),
            "{}: {found:?}",
            flag.long
        );
    }
}
