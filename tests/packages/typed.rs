//! The commands of docs/packages.md, as they stand there.

use std::path::{Path, PathBuf};

use super::{assert_is_kept, debian, edit, installed_files, packages, run, shell};
use crate::support::dist;
use crate::support::process::Folder;

/// A version after the one that is made.
const NEWER: &str = "0.1.1";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commands of the page that begin with one of these words, in the order of the page, without what is said of them.
fn typed(words: &[&str]) -> Vec<String> {
    let page = std::fs::read_to_string(dist::root().join("docs/packages.md")).expect("there is a page");
    let lines = page
        .lines()
        .filter(|line| words.contains(&line.split(' ').next().unwrap_or_default()));
    lines
        .map(|line| line.split(" #").next().unwrap_or_default().trim_end().to_owned())
        .collect()
}

/// Packages of a newer version for this machine, in a folder of their own.
fn newer(folder: &Folder) -> PathBuf {
    let into = folder.path().join("newer");
    let at = into.display();
    shell(&format!(
        "mkdir {at}; cp {} {at}/; EDGE_SYNCER_DIST={at} scripts/package --arch amd64 --version {NEWER}",
        dist::archs()[0].binary().display()
    ));
    into
}

/// One package of a folder or of what is released.
fn copy(from: &Path, end: &str, to: &Path) {
    let entries = std::fs::read_dir(from).expect("the folder can be read");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let found: Vec<PathBuf> = paths
        .filter(|path| path.to_string_lossy().ends_with(end) && !path.to_string_lossy().contains("-provider"))
        .filter(|path| {
            [VERSION, NEWER]
                .iter()
                .any(|version| path.to_string_lossy().contains(&format!("{version}-1")))
        })
        .collect();
    assert_eq!(found.len(), 1, "{end}: {found:?}");
    std::fs::copy(&found[0], to.join(found[0].file_name().expect("it has a name"))).expect("the folder can be written");
}

#[test]
#[ignore = "needs scripts/package and mmdebstrap"]
fn apt_does_what_the_page_says() {
    let folder = Folder::create("apt");
    let root = debian(&folder);
    copy(&dist::folder(), &format!("{VERSION}-1_amd64.deb"), &root);
    copy(&newer(&folder), "_amd64.deb", &root);
    let lines: Vec<String> = typed(&["apt"])
        .iter()
        .map(|line| line.replace("_arm64", "_amd64"))
        .collect();
    let [install, back, remove, purge] = &lines[..] else {
        panic!("docs/packages.md has other commands of apt: {lines:?}");
    };
    let apt = |line: &str| {
        shell(&format!(
            "cd {root}; [ -e dev/null ] || mknod -m 666 dev/null c 1 3
            echo 'APT::Get::Assume-Yes \"true\";' >etc/apt/apt.conf.d/99-yes
            DEBIAN_FRONTEND=noninteractive chroot {root} sh -c 'cd / && {line}' 2>&1",
            root = root.display()
        ))
    };
    let is_installed = |version: &str| {
        let said = shell(&format!("chroot {} dpkg -s edge-syncer", root.display()));
        assert!(said.contains("Status: install ok installed"), "{said}");
        assert!(said.contains(&format!("Version: {version}-1")), "{said}");
    };
    let before = installed_files(&root);
    apt(install);
    is_installed(VERSION);
    let env = root.join("etc/edge-syncer/edge-syncer.env");
    edit(&env);
    apt(&install.replace(VERSION, NEWER));
    is_installed(NEWER);
    apt(back);
    is_installed(VERSION);
    assert_is_kept(&env);
    apt(remove);
    assert!(env.exists() && !root.join("usr/bin/edge-syncer").exists());
    apt(purge);
    let of_apt = ["./dev/null", "./etc/apt/apt.conf.d/99-yes"];
    let after = installed_files(&root);
    let left: Vec<&str> = after.lines().filter(|line| !of_apt.contains(line)).collect();
    let before: Vec<&str> = before.lines().filter(|line| !of_apt.contains(line)).collect();
    // What apt notes down for itself.
    let is_of_apt = |line: &&&str| line.starts_with("./var/lib/apt");
    let new: Vec<&&str> = left
        .iter()
        .filter(|line| !before.contains(line) && !is_of_apt(line))
        .collect();
    assert_eq!(new, [&""; 0], "a purge leaves nothing");
}

/// A repository with nothing but a shell, which the scripts of packages need.
fn repository(folder: &Folder) -> String {
    let at = folder.path().join("repository").display().to_string();
    let nfpm = run("scripts/release", &["--tool", "nfpm"]);
    shell(&format!(
        "mkdir {at}; cp /bin/busybox {at}/sh
        printf 'name: shell\\narch: amd64\\nversion: 1.0.0\\ndescription: a shell\\nlicense: GPL-2.0\\nmaintainer: nobody\\ncontents:\\n- {{src: {at}/sh, dst: /bin/sh, file_info: {{mode: 0755}}}}\\n' >{at}/nfpm.yaml
        {nfpm} package --config {at}/nfpm.yaml --packager rpm --target {at}/
        rm {at}/sh; createrepo_c --quiet {at}"
    ));
    at
}

#[test]
#[ignore = "needs scripts/package and dnf"]
fn dnf_does_what_the_page_says() {
    let folder = Folder::create("dnf");
    let here = folder.path().join("here");
    std::fs::create_dir(&here).expect("the folder is new");
    copy(&dist::folder(), &format!("{VERSION}-1.x86_64.rpm"), &here);
    copy(&newer(&folder), ".x86_64.rpm", &here);
    let lines = typed(&["dnf", "rpm"]);
    let lines: Vec<String> = lines.iter().map(|line| line.replace(".aarch64", ".x86_64")).collect();
    let [install, back, remove] = &lines[..] else {
        panic!("docs/packages.md has other commands of dnf and rpm: {lines:?}");
    };
    let root = folder.path().join("root").display().to_string();
    let config = format!(
        "[main]\nassumeyes=1\nreposdir=/nonexistent\ncachedir={root}/var/cache/dnf\n[shell]\nname=shell\nbaseurl=file://{}\ngpgcheck=0\n",
        repository(&folder)
    );
    let config = folder.write("dnf.conf", config).display().to_string();
    let typed = |line: &str| {
        let line = line
            .replacen(
                "dnf ",
                &format!("dnf --config {config} --installroot {root} --releasever 1 "),
                1,
            )
            .replacen("rpm ", &format!("rpm --root {root} "), 1);
        shell(&format!("cd {}; {line} 2>&1", here.display()))
    };
    let is_installed = |version: &str| {
        assert_eq!(typed("rpm -q edge-syncer"), format!("edge-syncer-{version}-1.x86_64"));
        let said = run("chroot", &[&root, "/usr/bin/edge-syncer", "--version"]);
        assert_eq!(said, format!("edge-syncer {VERSION}"), "it is the same program");
    };
    typed(install);
    is_installed(VERSION);
    let env = Path::new(&root).join("etc/edge-syncer/edge-syncer.env");
    edit(&env);
    typed(&install.replace(VERSION, NEWER));
    is_installed(NEWER);
    typed(back);
    is_installed(VERSION);
    assert_is_kept(&env);
    typed(remove);
    assert!(!Path::new(&format!("{root}/usr/bin/edge-syncer")).exists());
    assert_is_kept(&env.with_extension("env.rpmsave"));
    // Nothing of them is left in what is released.
    assert!(packages(NEWER, ".rpm").is_empty());
}
