//! Debian's and RPM's packages.

mod typed;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::dist;
use crate::support::process::Folder;

/// A version before the one that is made.
const OLDER: &str = "0.0.9";

/// Runs a command to its end; panics with all that it has said if it fails.
fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).env("LC_ALL", "C.UTF-8").output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; see scripts/release --packages"));
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
        .trim()
        .to_owned();
    assert!(output.status.success(), "{program} {args:?}: {said}");
    said
}

fn shell(script: &str) -> String {
    run("bash", &["-euo", "pipefail", "-c", script])
}

/// What an administrator writes into the file of settings.
const EDITED: &str = "SYNC_TARGET_UID=mine\n";

fn edit(settings: &Path) {
    std::fs::write(settings, EDITED).expect("the file is there");
}

fn assert_is_kept(settings: &Path) {
    assert_eq!(std::fs::read_to_string(settings).expect("it is there"), EDITED);
}

/// The packages of a version that end so.
fn packages(version: &str, end: &str) -> Vec<PathBuf> {
    made(version, end, false)
}

/// Those for edges, or for providers.
fn made(version: &str, end: &str, of_providers: bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dist::folder()).expect("the folder can be read");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_it = name.starts_with("edge-syncer-provider") == of_providers;
        is_it && name.contains(&format!("{version}-1")) && name.ends_with(end)
    });
    found.sort();
    found
}

/// A small Debian system, made once.
fn debian(folder: &Folder) -> PathBuf {
    let root = folder.path().join("root");
    shell(&format!(
        "cache=${{EDGE_SYNCER_CACHE:-${{XDG_CACHE_HOME:-$HOME/.cache}}/edge-syncer}}/roots; mkdir -p $cache
        if ! [ -e $cache/bookworm.tar ]; then
          mmdebstrap --quiet --variant=minbase bookworm $cache/bookworm.part.tar
          mv $cache/bookworm.part.tar $cache/bookworm.tar
        fi
        mkdir {root}; tar -C {root} --exclude './dev/*' -xf $cache/bookworm.tar",
        root = root.display()
    ));
    root
}

fn in_root(root: &Path, words: &str) -> String {
    shell(&format!("chroot {} {words}", root.display()))
}

#[test]
#[ignore = "needs scripts/package and mmdebstrap"]
fn debian_installs_upgrades_removes_and_purges_it() {
    let folder = Folder::create("debian");
    let root = debian(&folder);
    run("scripts/package", &["--arch", "amd64", "--version", OLDER]);
    run("scripts/package", &[]);
    for (version, name) in [(OLDER, "older"), (env!("CARGO_PKG_VERSION"), "newer")] {
        let found = packages(version, "_amd64.deb");
        assert_eq!(found.len(), 1, "{version}: {found:?}");
        std::fs::copy(&found[0], root.join(format!("{name}.deb"))).expect("the root can be written");
    }
    let before = installed_files(&root);

    in_root(&root, "dpkg -i /older.deb");
    let version = in_root(&root, "edge-syncer --version");
    assert_eq!(version, concat!("edge-syncer ", env!("CARGO_PKG_VERSION")));
    let env = root.join("etc/edge-syncer/edge-syncer.env");
    edit(&env);
    in_root(&root, "dpkg -i --force-confold /newer.deb");
    assert!(in_root(&root, "dpkg -s edge-syncer").contains(concat!("Version: ", env!("CARGO_PKG_VERSION"), "-1")));
    assert_is_kept(&env);
    std::fs::write(root.join("etc/edge-syncer/hub.kubeconfig"), "secret").expect("the folder is there");

    in_root(&root, "dpkg -r edge-syncer");
    assert!(!root.join("usr/bin/edge-syncer").exists());
    assert!(
        env.exists() && root.join("etc/edge-syncer/hub.kubeconfig").exists(),
        "a remove keeps what was configured"
    );
    in_root(&root, "dpkg -P edge-syncer");
    assert_eq!(installed_files(&root), before, "a purge leaves nothing");
    std::fs::remove_file(&packages(OLDER, "_amd64.deb")[0]).expect("it was made above");
    for path in packages(OLDER, ".rpm") {
        std::fs::remove_file(path).expect("it was made above");
    }
}

/// What is in a root, but for what dpkg notes down for itself.
fn installed_files(root: &Path) -> String {
    shell(&format!(
        "cd {} && find . -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -path ./var/cache -prune -o -print | sort",
        root.display()
    ))
}

#[test]
#[ignore = "needs scripts/package and lintian"]
fn lintian_finds_no_errors() {
    let found = packages(env!("CARGO_PKG_VERSION"), ".deb");
    assert_eq!(found.len(), dist::archs().len(), "run scripts/package");
    for path in found.into_iter().chain(made(env!("CARGO_PKG_VERSION"), ".deb", true)) {
        shell(&format!("lintian --allow-root --fail-on error {}", path.display()));
    }
}

#[test]
#[ignore = "needs scripts/package and rpm"]
fn rpm_installs_upgrades_and_removes_it() {
    let folder = Folder::create("rpm");
    let found = packages(env!("CARGO_PKG_VERSION"), ".rpm");
    assert_eq!(found.len(), dist::archs().len(), "run scripts/package");
    let dist = folder.path().join("older").display().to_string();
    shell(&format!(
        "mkdir {dist}; cp {} {dist}/; EDGE_SYNCER_DIST={dist} scripts/package --arch amd64 --version {OLDER}",
        dist::archs()[0].binary().display()
    ));
    let root = folder.path().join("root").display().to_string();
    let newer = found
        .iter()
        .find(|path| path.to_string_lossy().contains(".x86_64."))
        .expect("there is one");
    let scripts = run("rpm", &["-qp", "--scripts", &newer.display().to_string()]);
    for name in ["postinstall", "preuninstall", "postuninstall"] {
        assert!(scripts.contains(&format!("{name} scriptlet")), "{scripts}");
    }
    assert!(scripts.contains("[ -d /run/systemd/system ] || exit 0"), "{scripts}");
    // The scripts need a shell in the root; there is none, and what they do is tested with dpkg.
    let rpm = |what: &str| shell(&format!("rpm --root {root} {what}"));
    shell(&format!("mkdir -p {root}/var/lib/rpm; rpm --root {root} --initdb"));
    rpm(&format!(
        "--noscripts --nodeps -i {dist}/edge-syncer-{OLDER}-1.x86_64.rpm"
    ));
    let version = run(&format!("{root}/usr/bin/edge-syncer"), &["--version"]);
    assert_eq!(version, concat!("edge-syncer ", env!("CARGO_PKG_VERSION")));
    let env = PathBuf::from(format!("{root}/etc/edge-syncer/edge-syncer.env"));
    edit(&env);
    rpm(&format!("--noscripts --nodeps -U {}", newer.display()));
    assert_is_kept(&env);
    assert!(rpm("-q edge-syncer").contains(env!("CARGO_PKG_VERSION")));
    rpm("--noscripts -e edge-syncer");
    assert!(!Path::new(&format!("{root}/usr/bin/edge-syncer")).exists());
    let saved = PathBuf::from(format!("{root}/etc/edge-syncer/edge-syncer.env.rpmsave"));
    assert_is_kept(&saved);
}

#[test]
#[ignore = "needs scripts/package --provider and rpm"]
fn a_package_for_providers_has_the_binary_under_the_names_of_both_agents() {
    let folder = Folder::create("provider");
    for arch in dist::archs() {
        for (end, unpack) in [
            (format!("_{}.deb", arch.deb), "dpkg-deb -x"),
            (format!(".{}.rpm", arch.rpm), "unpack_rpm"),
        ] {
            let found = made(env!("CARGO_PKG_VERSION"), &end, true);
            assert_eq!(found.len(), 1, "{end}: {found:?}");
            let root = folder.path().join(&end).display().to_string();
            let binary = arch.binary().display().to_string();
            shell(&format!(
                "unpack_rpm() {{ mkdir -p $2; rpm --root $2 --noscripts --nodeps --ignorearch -i $1; }}
                {unpack} {} {root}; cmp {root}/usr/bin/edge-syncer-provider {}
                for name in init-agent api-syncagent; do
                  [ $(readlink {root}/usr/bin/$name) = edge-syncer-provider ]
                  zcat {root}/usr/share/man/man1/$name.1.gz | grep 'FLAGS OF INIT' >/dev/null
                done
                test -s {root}/usr/share/doc/edge-syncer-provider/copyright",
                found[0].display(),
                binary.replace("edge-syncer-0", "edge-syncer-provider-0"),
            ));
        }
    }
}

#[test]
#[ignore = "needs scripts/package and rpm"]
fn each_package_has_the_binary_of_its_architecture() {
    let folder = Folder::create("unpacked");
    for arch in dist::archs() {
        for (end, unpack) in [
            (format!("_{}.deb", arch.deb), "dpkg-deb -x"),
            (format!(".{}.rpm", arch.rpm), "unpack_rpm"),
        ] {
            let found = packages(env!("CARGO_PKG_VERSION"), &end);
            assert_eq!(found.len(), 1, "{end}: {found:?}");
            let root = folder.path().join(&end).display().to_string();
            shell(&format!(
                "unpack_rpm() {{ mkdir -p $2; rpm --root $2 --noscripts --nodeps --ignorearch -i $1; }}
                {unpack} {} {root}; cmp {root}/usr/bin/edge-syncer {}
                for unit in manifests/systemd/*; do cmp {root}/usr/lib/systemd/system/${{unit##*/}} $unit; done
                test -s {root}/usr/share/doc/edge-syncer/third-party-licences.gz
                zcat {root}/usr/share/doc/edge-syncer/sbom.cdx.json.gz | jq -e '.specVersion == \"1.5\" and (.components | length) > 100'
                zcat {root}/usr/share/man/man1/edge-syncer.1.gz | grep sync >/dev/null",
                found[0].display(),
                arch.binary().display(),
            ));
        }
    }
}
